"""Generation: tokens a second of a small GPT, beside torch's eager loop with a key/value cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from benchmarks import targets
from benchmarks.measure import placement, say_rows, settled_probe
from benchmarks.process import GENERATORS, Child
from benchmarks.race import QUICK, Effort, Race, Say
from benchmarks.verdict import ratio
from gradcli.bench.ceilings import Meter

# A model of characters. Beyond the context both go on behind the last half of it, read at once.
LAYERS, WIDTH, HEADS, CONTEXT, VOCABULARY = 6, 128, 4, 256, 256
PROMPT = CONTEXT // 2
BATCHES = (1, 8)


def generation(quick: bool, only: Iterable[str], say: Say) -> dict[str, Any]:
    """Time of a step, which gives a token in each row of a batch."""
    probe = settled_probe(say)
    run = Race(probe, QUICK if quick else Effort(), say)
    batches: dict[str, Any] = {}
    try:
        run.enter({n: c for n, c in GENERATORS.items() if not only or c.package in only})
        versions = run.versions()
        for batch in BATCHES:
            say(f"generation, {batch} at a time")
            rows = run.run(_builder(batch), trace=0)
            ours = targets.best(rows, targets.OUR_GENERATION)
            ratios = {
                "torch": ratio(targets.best(rows, targets.TORCH_GENERATION), ours),
                "floor": ratio(floor_ms(batch), ours),
            }
            batches[str(batch)] = {"rows": rows, "ratios": ratios}
            say_rows(rows, {"torch": ratios["torch"]}, say)
            say(f"  of the machine's floor: {ratios['floor'] or 0:.0%}")
    finally:
        run.leave()
    return {"batches": batches, "versions": versions, "placement": placement(probe)}


def _builder(batch: int) -> Callable[[Child], int]:
    return lambda child: int(child.ask("generation", batch=batch))


def floor_ms(batch: int) -> float:
    """The least time of a step: each weight and each key read once, at the rates of this machine.

    Reading is half of a copy. A step finds three quarters of the context, in the mean.
    """
    weights = LAYERS * 12 * WIDTH**2 + WIDTH * VOCABULARY
    keys = LAYERS * 2 * WIDTH * CONTEXT * 3 // 4
    meter = Meter()
    meter.run()
    seconds, _ = meter.ceilings().least_seconds(
        2.0 * batch * (weights + keys), 4.0 * (weights + batch * keys)
    )
    return seconds * 1e3
