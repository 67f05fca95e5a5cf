"""What a step on ranks costs, predicted from the steps of one process and the sums of `doctor`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from gradcli.engine.distributed.exact import SMALL, TINY

NUMBER = 4  # bytes of a float32
ALONE = "1 rank x 1 thread"
THREADS = "1 rank x 2 threads"
COUNTS = (2, 4)  # ranks with which a step is measured


class Check(NamedTuple):
    """A step in milliseconds: what the model says, and the median of those that were measured."""

    model_ms: float
    median_ms: float

    @property
    def error(self) -> float:
        """Above 0: the step takes less than was predicted."""
        return self.model_ms / self.median_ms - 1


def on_ranks(count: int) -> str:
    """What a measurement on so many ranks is called."""
    return f"{count} ranks x 1 thread"


def share(count: int) -> str:
    """What the measurement of one rank's share of the work, made alone, is called."""
    return f"{ALONE}, batch / {count}"


def checks(result: Mapping[str, Any]) -> dict[str, dict[int, Check]]:
    """For each config of a result and each number of ranks, the step predicted and measured."""
    return {
        name: {
            count: Check(
                step_ms(
                    median(row["ms"][share(count)]),
                    count,
                    result["cores"],
                    row["numbers"] * NUMBER,
                    result["doctor"][str(count)],
                ),
                median(row["ms"][on_ranks(count)]),
            )
            for count in COUNTS
        }
        for name, row in result["steps"].items()
    }


def step_ms(share_ms: float, ranks: int, cores: int, nbytes: int, sums: Sequence[Any]) -> float:
    """A rank's share of the work, once for each that takes its turn on a core, + the sum.

    Args:
        share_ms: a step of one rank alone, with one thread, on its share of the batch.
        ranks: how many share the batch.
        cores: how many of them compute at a time.
        nbytes: gradients of the model.
        sums: `sums` of `mpirun -n RANKS gradcli doctor --json`.
    """
    return share_ms * math.ceil(ranks / cores) + between(sums, nbytes)


def between(sums: Sequence[Any], nbytes: int) -> float:
    """Milliseconds of a sum of so many bytes: between measured ones, by logarithms."""
    rows = sorted((row["bytes"], row["exact_ms"]) for row in sums)
    if nbytes <= rows[0][0]:
        return float(rows[0][1])
    pairs = (pair for pair in pairwise(rows) if nbytes <= pair[1][0])
    low, high = next(pairs, (rows[-2], rows[-1]))
    part = math.log(nbytes / low[0]) / math.log(high[0] / low[0])
    return math.exp((1 - part) * math.log(low[1]) + part * math.log(high[1]))


def many_ms(ranks: int, nbytes: int, latency_ms: float, ms_per_byte: float) -> float:
    """A sum on any number of ranks: messages one after another, and the bytes that a rank sends."""
    if ranks == 1:
        return 0.0
    power, rounds = ranks & (ranks - 1) == 0, math.log2(ranks)
    messages, volume = 2.0 * (ranks - 1), 2 * (ranks - 1) / ranks * nbytes
    if power and nbytes <= SMALL:  # as engine/distributed/exact.py chooses
        messages = 2 * rounds
        if ranks == 2 or nbytes <= TINY:
            messages, volume = rounds, rounds * nbytes
    return messages * latency_ms + volume * ms_per_byte


def own_ms_per_byte(sums: Sequence[Any]) -> float:
    """What a byte of a sum costs in copies and additions: by `doctor` on 2 ranks of one host.

    From its smallest and largest sum. Two ranks send as many bytes as a sum has.
    """
    rows = sorted((row["bytes"], row["exact_ms"]) for row in sums)
    (few, small), (many, large) = rows[0], rows[-1]
    return float((large - small) / (many - few))
