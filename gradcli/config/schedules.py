"""Schedules by name: typed constructors, each the schema of its keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradcli.config.fields import Portion, Share, StepsOrPercent

if TYPE_CHECKING:
    from gradcli.train.job import Schedule


@dataclass(frozen=True)
class Plan:
    """A schedule before the length of the run is known.

    Attributes:
        warmup: as written, a number of steps or a share of the run.
        marks: further points in the run, as written.
        make: takes the warm-up and the marks in steps, and the steps of the run.
    """

    warmup: int | str
    marks: tuple[int | str, ...]
    make: Callable[[int, list[int], int], Schedule]


def constant(*, warmup: StepsOrPercent = 0) -> Plan:
    """The same rate throughout, after the warm-up."""

    def make(warm: int, marks: list[int], total: int) -> Schedule:
        from gradcli.engine.optim import schedule

        return schedule.Constant(warmup=warm, total=total)

    return Plan(warmup, (), make)


def step(at: list[StepsOrPercent], *, factor: Share = 0.1, warmup: StepsOrPercent = 0) -> Plan:
    """The rate is multiplied by `factor` at each step in `at`."""

    def make(warm: int, marks: list[int], total: int) -> Schedule:
        from gradcli.engine.optim import schedule

        return schedule.Step(at=marks, factor=factor, warmup=warm, total=total)

    return Plan(warmup, tuple(at), make)


def cosine(*, final: Portion = 0.0, warmup: StepsOrPercent = 0) -> Plan:
    """Half a cosine from the full rate down to `final` times it."""

    def make(warm: int, marks: list[int], total: int) -> Schedule:
        from gradcli.engine.optim import schedule

        return schedule.Cosine(final=final, warmup=warm, total=total)

    return Plan(warmup, (), make)


def linear(*, final: Portion = 0.0, warmup: StepsOrPercent = 0) -> Plan:
    """A straight line from the full rate down to `final` times it."""

    def make(warm: int, marks: list[int], total: int) -> Schedule:
        from gradcli.engine.optim import schedule

        return schedule.Linear(final=final, warmup=warm, total=total)

    return Plan(warmup, (), make)


SCHEDULES: dict[str, Callable[..., Any]] = {
    "constant": constant,
    "step": step,
    "cosine": cosine,
    "linear": linear,
}
