"""From a time and an amount of work to rates, and to the share of this machine's ceilings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.bench.ceilings import Ceilings


def of(seconds: float, flops: float, nbytes: float, ceilings: Ceilings) -> dict[str, Any]:
    """Milliseconds, GFLOP/s, GB/s, and the share of the ceiling that binds; null without work.

    `percent` is the least time that this machine needs for the work, in percent of the time taken:
    the longer one of its arithmetic and its memory traffic at their ceilings.
    """
    least, bound = ceilings.least_seconds(flops, nbytes)
    return {
        "ms": round(seconds * 1e3, 4),
        "gflops": _rate(flops, seconds),
        "gbs": _rate(nbytes, seconds),
        "percent": percent(least, seconds),
        "bound": bound if least else None,
    }


def percent(least: float, seconds: float) -> float | None:
    """How much of the time taken was needed; nothing where there was nothing to do."""
    return round(100 * least / seconds, 1) if least and seconds > 0 else None


def _rate(amount: float, seconds: float) -> float | None:
    return round(amount / seconds / 1e9, 2) if amount and seconds > 0 else None
