"""The logs of two runs beside each other: the first step whose loss differs in a bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from gradcli.dataclass import dataclass
from gradcli.report.run_files import RunFiles

STEP, EVALUATION = 0, 1


class RecordFigures(NamedTuple):
    """The figures of a record: at which step, and whether of a step or of an evaluation."""

    step: int
    kind: int
    figures: Mapping[str, float | str]


class Unequal(NamedTuple):
    """A figure that differs; a text stands for a number that is not finite."""

    step: int
    key: str
    base: float | str
    other: float | str


@dataclass(frozen=True)
class Losses:
    """What two logs have in common.

    Attributes:
        steps: so many steps both have a record of.
        evaluations: the same of evaluations.
        same_until: the last of those steps before the first one that differs; None where the first
            differs, or there is none.
        unequal: the first step whose loss differs.
        unequal_evaluation: the first evaluation in which a figure differs.
    """

    steps: int
    evaluations: int
    same_until: int | None
    unequal: Unequal | None
    unequal_evaluation: Unequal | None


def losses(base: RunFiles, candidate: RunFiles) -> Losses:
    """Compare two logs record by record; floats in them are exact."""
    steps, evaluations = 0, 0
    same_until: int | None = None
    first: dict[int, Unequal] = {}
    for ours, theirs in _in_common(_entries(base), _entries(candidate)):
        unequal = _unequal(ours, theirs)
        if unequal is not None:
            first.setdefault(ours.kind, unequal)
        if ours.kind == STEP:
            steps += 1
            if STEP not in first:
                same_until = ours.step
        else:
            evaluations += 1
    return Losses(steps, evaluations, same_until, first.get(STEP), first.get(EVALUATION))


def _in_common(
    ours: Iterator[RecordFigures], theirs: Iterator[RecordFigures]
) -> Iterator[tuple[RecordFigures, RecordFigures]]:
    """The entries of both logs with the same step and kind."""
    first, second = next(ours, None), next(theirs, None)
    while first is not None and second is not None:
        if first[:2] == second[:2]:
            yield first, second
            first, second = next(ours, None), next(theirs, None)
        elif first[:2] < second[:2]:
            first = next(ours, None)
        else:
            second = next(theirs, None)


def _entries(run: RunFiles) -> Iterator[RecordFigures]:
    """Steps and evaluations in their order; what a damaged log has out of order is left out."""
    before = (-1, STEP)
    for record in run.records():
        kind = {"step": STEP, "eval": EVALUATION}.get(str(record.get("event")))
        step = record.get("step")
        if kind is None or type(step) is not int or (step, kind) <= before:
            continue
        before = (step, kind)
        yield RecordFigures(step, kind, _figures(record, kind))


def _figures(record: Mapping[str, Any], kind: int) -> dict[str, float | str]:
    names = ("loss",) if kind == STEP else [name for name in record if name.startswith("val.")]
    nonfinite = record.get("nonfinite")
    odd = nonfinite if isinstance(nonfinite, dict) else {}
    figures: dict[str, float | str] = {}
    for name in names:
        value = record.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            figures[name] = float(value) if abs(value) < 1e308 else str(value)
        elif value is None and isinstance(odd.get(name), str):
            figures[name] = odd[name]
    return figures


def _unequal(ours: RecordFigures, theirs: RecordFigures) -> Unequal | None:
    for key, value in ours.figures.items():
        if key in theirs.figures and repr(value) != repr(theirs.figures[key]):  # -0.0 is not 0.0
            return Unequal(ours.step, key, value, theirs.figures[key])
    return None
