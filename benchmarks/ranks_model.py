"""What a step on ranks costs, predicted from one rank's step and the sums of `doctor`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

NUMBER = 4  # bytes of a float32
SMALL = 4 << 20  # bytes, up to which 2^k ranks exchange halves


def step_ms(alone_ms: float, ranks: int, cores: int, nbytes: int, sums: Sequence[Any]) -> float:
    """One thread's step, shared by the ranks, + the sum of `nbytes`.

    Args:
        alone_ms: of one rank with one thread.
        ranks: how many share the work.
        cores: how many of them compute at a time.
        nbytes: gradients of the model.
        sums: `sums` of `mpirun -n RANKS gradcli doctor --json`.
    """
    return alone_ms / min(ranks, cores) + between(sums, nbytes)


def between(sums: Sequence[Any], nbytes: int) -> float:
    """Milliseconds of a sum of so many bytes: between measured ones, by logarithms."""
    rows = sorted((row["bytes"], row["exact_ms"]) for row in sums)
    if nbytes <= rows[0][0]:
        return float(rows[0][1])
    pairs = (pair for pair in pairwise(rows) if nbytes <= pair[1][0])
    low, high = next(pairs, (rows[-2], rows[-1]))
    share = math.log(nbytes / low[0]) / math.log(high[0] / low[0])
    return math.exp((1 - share) * math.log(low[1]) + share * math.log(high[1]))


def many_ms(ranks: int, nbytes: int, latency_ms: float, bytes_per_ms: float) -> float:
    """Rounds x latency + bytes on the line / its speed: a sum on more ranks than were measured.

    2·log2(N) rounds where halves are exchanged, else 2·(N - 1) messages; 2·(N - 1)/N of the bytes.
    (Doubling, for the tiniest sums, is faster than that.)
    """
    if ranks == 1:
        return 0.0
    halves = ranks & (ranks - 1) == 0 and nbytes <= SMALL
    rounds = 2 * math.log2(ranks) if halves else 2 * (ranks - 1)
    return rounds * latency_ms + 2 * (ranks - 1) / ranks * nbytes / bytes_per_ms


def line_of(sums: Sequence[Any]) -> tuple[float, float]:
    """Latency in ms and bytes a ms, from `doctor` on 2 ranks: its smallest and largest sum."""
    rows = sorted((row["bytes"], row["exact_ms"]) for row in sums)
    (_, small), (nbytes, large) = rows[0], rows[-1]
    return small, nbytes / (large - small)  # 1 round of doubling; 2·(2 - 1)/2 of the bytes
