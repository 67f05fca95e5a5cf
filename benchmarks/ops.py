"""Single eager calls beside torch: each of `op_cases` in four sizes and two element types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from benchmarks.measure import placement, settled_probe
from benchmarks.op_cases import DTYPES, HAVE_GRADIENT, OPS, SIDES
from benchmarks.op_ratios import key, spoken
from benchmarks.process import OP_PEERS, Child
from benchmarks.race import Effort, Race, Say, brief

EFFORT, LOOK = Effort(good_chunks=3, seconds=0.5), Effort(good_chunks=1, seconds=0.2, least=1)
CHUNK = 0.01


def ops(names: Iterable[str], quick: bool, only: Iterable[str], say: Say) -> dict[str, Any]:
    """Milliseconds of each call and library, by code, way and size."""
    probe = settled_probe(say)
    run = Race(probe, LOOK if quick else EFFORT, say)
    rows: dict[str, Any] = {}
    try:
        run.enter({n: c for n, c in OP_PEERS.items() if not only or c.package in only})
        versions = run.versions()
        for code in names or OPS:
            rows[code] = {}
            for name, build in _builders(code, quick):
                rows[code][name] = brief(run.run(build, trace=0, chunk=CHUNK))
            say(f"{code}: {spoken(rows[code])}")
    finally:
        run.leave()
    return {"rows": rows, "versions": versions, "placement": placement(probe)}


def _builders(code: str, quick: bool) -> Iterator[tuple[str, Callable[[Child], int]]]:
    """A case in every way, by a key such as "float32 forward 1024"."""
    ways = ("forward", "backward") if code in HAVE_GRADIENT else ("forward",)
    for dtype in DTYPES[:1] if quick else DTYPES:
        for way in ways:
            for side in (SIDES[0], SIDES[-1]) if quick else SIDES:
                yield key(dtype, way, side), _builder(code, way, side, dtype)


def _builder(code: str, way: str, side: int, dtype: str) -> Callable[[Child], int]:
    return lambda child: int(child.ask("op", code=code, way=way, side=side, dtype=dtype))
