"""What the race of single calls says: how many times as fast as torch each of them is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.medians import geometric_mean
from benchmarks.op_cases import DTYPES, OPS, SIDES, WAYS
from benchmarks.verdict import Verdict, at_least, ratio

MEAN, LARGE, SMALL = 2.0, 0.95, 0.8  # times as fast as torch: all, each of the sizes at the ends


def key(dtype: str, way: str, side: int) -> str:
    """Of a case in one way, in the rows of a result."""
    return f"{dtype} {way} {side * side}"


def ratios(row: Mapping[str, Any]) -> dict[str, float]:
    """Torch's time over ours, by key, where both were measured."""
    peers = ("torch", "gradcli")
    times = {k: [rows.get(peer, {}).get("ms") for peer in peers] for k, rows in row.items()}
    return {k: quotient for k, pair in times.items() if (quotient := ratio(*pair)) is not None}


def spoken(row: Mapping[str, Any]) -> str:
    """The ratios in quotient line."""
    every = ", ".join(f"{key} {quotient:.2f}x" for key, quotient in ratios(row).items())
    return every or "no ratio: only quotient library took part"


def of_ops(result: Mapping[str, Any]) -> list[Verdict]:
    """All together, and the call that is furthest behind at each end of the sizes."""
    every = {
        f"{code}, {key}": times
        for code, row in result["rows"].items()
        for key, times in ratios(row).items()
    }
    mean = geometric_mean(list(every.values())) if every else None
    verdicts = [at_least("single calls, times as fast as torch, geometric mean", mean, MEAN)]
    for side, limit in ((SIDES[-1], LARGE), (SIDES[0], SMALL)):
        some = {name: ratio for name, ratio in every.items() if name.endswith(f" {side * side}")}
        worst = min(some, key=lambda name: some[name], default=None)
        behind = sum(times < limit for times in some.values())
        what = f"{side * side:,} numbers, the slowest of {len(some)} ({behind} below the limit)"
        figure = some[worst] if worst else None
        verdicts.append(at_least(f"{what}: {worst}" if worst else what, figure, limit))
    return verdicts


HEAD = ("call", *(f"{dtype}, {way}" for dtype in DTYPES for way in WAYS))


def lines(result: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """A line for each call: its ratios from the smallest to the largest size."""
    for code in OPS:
        row = ratios(result["rows"].get(code, {}))
        cells = [
            " ".join(f"{row[k]:.2f}" for side in SIDES if (k := key(dtype, way, side)) in row)
            for dtype in DTYPES
            for way in WAYS
        ]
        if any(cells):
            yield (f"`{code}`", *(cell or "-" for cell in cells))
