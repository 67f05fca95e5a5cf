"""A step's time by layer and by call: sums over the timed calls, as rows of the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.bench import rates
from gradcli.bench.layers import THE_REST

if TYPE_CHECKING:
    from gradcli.bench.calls import Parts, Timed
    from gradcli.bench.ceilings import Ceilings


def by_layer(parts: Parts, ceilings: Ceilings) -> list[dict[str, Any]]:
    """One row for each layer or other part of the step that has calls, in the step's order."""
    timed: dict[str, list[Timed]] = {owner: [] for owner in [*parts.owners, THE_REST.owner]}
    for call in parts.calls:
        timed[call.scope.owner].append(call)
    return [_layer(owner, mine, ceilings) for owner, mine in timed.items() if mine]


def _layer(owner: str, timed: Sequence[Timed], ceilings: Ceilings) -> dict[str, Any]:
    back = _seconds(call for call in timed if call.scope.backward)
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
    least = sum(ceilings.least_seconds(call.flops, call.nbytes)[0] for call in timed)
    flops, nbytes = sum(call.flops for call in timed), sum(call.nbytes for call in timed)
    figures = rates.of(seconds, flops, nbytes, ceilings)
    return {**figures, "percent": rates.percent(least, seconds), "bound": None}


def _seconds(timed: Iterable[Timed]) -> float:
    return sum(call.seconds for call in timed)


def by_call(calls: Sequence[Timed], ceilings: Ceilings, most: int) -> list[dict[str, Any]]:
    """The calls that take longest, longest first."""
    longest = sorted(calls, key=lambda call: call.seconds, reverse=True)
    return [_call(call, ceilings) for call in longest[:most]]


def _call(call: Timed, ceilings: Ceilings) -> dict[str, Any]:
    figures = rates.of(call.seconds, call.flops, call.nbytes, ceilings)
    return {
        "kernel": call.title,
        "shapes": call.shapes,
        "layer": call.scope.owner,
        "backward": call.scope.backward,
        **figures,
    }
