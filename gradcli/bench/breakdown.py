"""A step's time by layer and by call: sums over the timed calls, as rows of the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.bench import rates
from gradcli.bench.layers import ELSEWHERE

if TYPE_CHECKING:
    from gradcli.bench.calls import Parts, Timed
    from gradcli.bench.ceilings import Ceilings


def by_layer(parts: Parts, ceilings: Ceilings) -> list[dict[str, Any]]:
    """One row for each layer or other part of the step that has calls, in the step's order."""
    timed: dict[str, list[Timed]] = {owner: [] for owner in [*parts.owners, ELSEWHERE.owner]}
    for one in parts.calls:
        timed[one.turn.owner].append(one)
    return [_layer(owner, mine, ceilings) for owner, mine in timed.items() if mine]


def _layer(owner: str, timed: Sequence[Timed], ceilings: Ceilings) -> dict[str, Any]:
    back = _seconds(one for one in timed if one.turn.backward)
    return {
        "name": owner,
        "calls": len(timed),
        "forward_ms": round(1e3 * (_seconds(timed) - back), 4),
        "backward_ms": round(1e3 * back, 4),
        **total(timed, ceilings),
    }


def total(timed: Sequence[Timed], ceilings: Ceilings) -> dict[str, Any]:
    """Time and rates of several calls; their share counts each call at the ceiling it has."""
    seconds = _seconds(timed)
    least = sum(ceilings.least_seconds(one.flops, one.nbytes)[0] for one in timed)
    flops, nbytes = sum(one.flops for one in timed), sum(one.nbytes for one in timed)
    figures = rates.of(seconds, flops, nbytes, ceilings)
    return {**figures, "percent": rates.percent(least, seconds), "bound": None}


def _seconds(timed: Iterable[Timed]) -> float:
    return sum(one.seconds for one in timed)


def by_call(found: Sequence[Timed], ceilings: Ceilings, most: int) -> list[dict[str, Any]]:
    """The calls that take longest, longest first."""
    longest = sorted(found, key=lambda one: one.seconds, reverse=True)
    return [_call(one, ceilings) for one in longest[:most]]


def _call(one: Timed, ceilings: Ceilings) -> dict[str, Any]:
    figures = rates.of(one.seconds, one.flops, one.nbytes, ceilings)
    return {
        "kernel": one.title,
        "shapes": one.shapes,
        "layer": one.turn.owner,
        "backward": one.turn.backward,
        **figures,
    }
