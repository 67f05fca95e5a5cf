"""How a training step grows with width, depth, batch, channels, pixels and context."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.grow_cases import AXES
from benchmarks.measure import placement, settled_probe
from benchmarks.op_ratios import spoken
from benchmarks.process import GROW_PEERS, Child
from benchmarks.race import QUICK, Effort, Race, Say, brief


def grow(names: Iterable[str], quick: bool, only: Iterable[str], say: Say) -> dict[str, Any]:
    """Milliseconds of a step, by axis and size: ours captured, torch's eager."""
    probe = settled_probe(say)
    run = Race(probe, QUICK if quick else Effort(good_chunks=9, seconds=10.0), say)
    axes: dict[str, Any] = {}
    try:
        run.enter({n: c for n, c in GROW_PEERS.items() if not only or c.package in only})
        versions = run.versions()
        for name in names or AXES:
            sizes = AXES[name].sizes
            axes[name] = {
                str(size): brief(run.run(_builder(name, size), trace=0))
                for size in (sizes[::2] if quick else sizes)
            }
            say(f"{name}: {spoken(axes[name])}")
    finally:
        run.leave()
    return {"axes": axes, "versions": versions, "placement": placement(probe)}


def _builder(axis: str, size: int) -> Callable[[Child], int]:
    return lambda child: int(child.ask("grow", axis=axis, size=size))
