"""Schedules by name: typed constructors, each the schema of its keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from gradcli.config.fields import StepsOrPercent
from gradcli.config.merge import full
from gradcli.config.node import Node, Report
from gradcli.config.schema import schema_of
from gradcli.config.sections import Chosen, choose
from gradcli.engine.kind import Bound, Count, NotNegative, Portion, Positive, Share, Whole
from gradcli.errors import OptionError
from gradcli.train.job import Metric
from gradcli.train.metrics import higher_is_better

if TYPE_CHECKING:
    from gradcli.train.job import Schedule

Points = Annotated[list[StepsOrPercent], Bound("a list of numbers of steps or shares such as 30%")]
Parts = Annotated[list[Any], Field(min_length=1), Bound("a list of schedules")]
Anneal = Literal["cos", "linear"]
Threshold = Literal["rel", "abs"]


def steps_of(value: int | str, total: int) -> int:
    """A number of steps, or a share of the run such as 5%."""
    if isinstance(value, int):
        return value
    return round(float(value.rstrip("%")) / 100 * total)


@dataclass(frozen=True)
class Plan:
    """A schedule before the length of the run is known.

    Attributes:
        kind: its class in gradcli.engine.optim.schedule.
        warmup: as written, a number of steps or a share of the run.
        options: what else the class takes.
        spans: options that are lengths, as written; at least one step each.
        marks: points in the run, as written, for the class's option `at`.
        parts: schedules between the marks, each with the length between its two as its run.
        metric: the figure that it watches.
    """

    kind: str
    warmup: int | str
    options: Mapping[str, Any]
    spans: Mapping[str, int | str | None]
    marks: tuple[int | str, ...] = ()
    parts: tuple[Plan, ...] = ()
    metric: str | None = None

    def schedule(self, total: int) -> Schedule:
        """The schedule of a run, or of a part of one, of `total` steps."""
        from gradcli.engine.optim import schedule

        made = {
            name: None if span is None else max(1, steps_of(span, total))
            for name, span in self.spans.items()
        }
        given = {**self.options, **made, "warmup": steps_of(self.warmup, total), "total": total}
        # A run without steps has no points to mark; all of them would be step 0.
        marks = [steps_of(mark, total) for mark in self.marks if total]
        if self.kind == "Step":
            every = given.pop("every", None)
            given["at"] = marks if every is None else list(range(every, total, every))
        if self.parts:
            given |= self._parts(marks, total)
        result: Schedule = getattr(schedule, self.kind)(**given)
        return result

    def _parts(self, marks: list[int], total: int) -> dict[str, Any]:
        begins = [0, *marks] if total else [0] * len(self.parts)
        ends = [*begins[1:], total]
        spans = zip(self.parts, begins, ends, strict=True)
        made = tuple(part.schedule(max(0, end - begin)) for part, begin, end in spans)
        return {"parts": made if total else made[:1], "at": tuple(marks)}


def constant(*, warmup: StepsOrPercent = 0) -> Plan:
    """The same rate throughout, after the warm-up."""
    return Plan("Constant", warmup, {}, {})


def step(
    at: Points | None = None,
    *,
    every: StepsOrPercent | None = None,
    factor: Share = 0.1,
    warmup: StepsOrPercent = 0,
) -> Plan:
    """The rate is multiplied by `factor` at each step in `at`, or `every` so many steps."""
    if (at is None) == (every is None):
        raise OptionError("needs either at, a list of points, or every, a number of steps")
    if at is not None:
        return Plan("Step", warmup, {"factor": factor}, {}, tuple(at))
    return Plan("Step", warmup, {"factor": factor}, {"every": every})


def multi_step(at: Points, *, factor: Share = 0.1, warmup: StepsOrPercent = 0) -> Plan:
    """The rate is multiplied by `factor` at each step in `at`."""
    return Plan("Step", warmup, {"factor": factor}, {}, tuple(at))


def exponential(factor: Positive, *, every: StepsOrPercent = 1, warmup: StepsOrPercent = 0) -> Plan:
    """The rate is multiplied by `factor` in `every` so many steps, a little at each step."""
    return Plan("Exponential", warmup, {"factor": factor}, {"every": every})


def polynomial(*, power: Positive = 1.0, final: Portion = 0.0, warmup: StepsOrPercent = 0) -> Plan:
    """A power of the share of the run that is left, from the full rate to `final` times it."""
    return Plan("Polynomial", warmup, {"power": power, "final": final}, {})


def cosine(
    *,
    final: Portion = 0.0,
    restart: StepsOrPercent | None = None,
    stretch: Count = 1,
    warmup: StepsOrPercent = 0,
) -> Plan:
    """Half a cosine down to `final`; after `restart` steps again, each `stretch` times as long."""
    return Plan("Cosine", warmup, {"final": final, "stretch": stretch}, {"restart": restart})


def one_cycle(
    *,
    rise: Portion = 0.3,
    start: Portion = 0.04,
    final: Portion = 4e-6,
    anneal: Anneal = "cos",
    three_phase: bool = False,
    warmup: StepsOrPercent = 0,
) -> Plan:
    """From `start` times the rate up to it in a share `rise` of the run, then down to `final`."""
    if three_phase and rise > 0.5:
        raise OptionError(f"with three_phase rise must be at most 0.5, got {rise}")
    options = {"rise": rise, "start": start, "final": final, "anneal": anneal}
    return Plan("OneCycle", warmup, {**options, "three_phase": three_phase}, {})


def plateau(
    metric: Metric = "val.loss",
    *,
    factor: Share = 0.1,
    patience: Whole = 10,
    threshold: NotNegative = 1e-4,
    threshold_mode: Threshold = "rel",
    cooldown: Whole = 0,
    final: Portion = 0.0,
    warmup: StepsOrPercent = 0,
) -> Plan:
    """Times `factor` when `metric` is no better in more than `patience` evaluations running."""
    options = {
        "metric": metric,
        "rising": higher_is_better(metric),
        "factor": factor,
        "patience": patience,
        "threshold": threshold,
        "threshold_mode": threshold_mode,
        "cooldown": cooldown,
        "final": final,
    }
    return Plan("Plateau", warmup, options, {}, metric=metric)


def linear(*, final: Portion = 0.0, warmup: StepsOrPercent = 0) -> Plan:
    """A straight line from the full rate down to `final` times it."""
    return Plan("Linear", warmup, {"final": final}, {})


def sequential(parts: Parts, at: Points, *, warmup: StepsOrPercent = 0) -> Plan:
    """One schedule up to each point in `at`, and one behind; each sees its stretch as a run."""
    made = tuple(_part(part) for part in parts)
    if len(at) != len(made) - 1:
        raise OptionError(
            f"{len(made)} parts need {len(made) - 1} points between them, at has {len(at)}"
        )
    if any(part.metric for part in made):
        raise OptionError("a plateau watches the whole run, it cannot be a part")
    return Plan("Sequential", warmup, {}, {}, tuple(at), made)


def _part(written: Any) -> Plan:
    """A part that `choose_schedule` has found right."""
    keys = {"name": written} if isinstance(written, str) else dict(written)
    make = SCHEDULES[keys.pop("name")]
    schema = schema_of(make)
    plan: Plan = make(**schema.values(schema.model.model_validate_json(json.dumps(keys))))
    return plan


SCHEDULES: dict[str, Callable[..., Plan]] = {
    "constant": constant,
    "step": step,
    "multi_step": multi_step,
    "exponential": exponential,
    "polynomial": polynomial,
    "cosine": cosine,
    "one_cycle": one_cycle,
    "plateau": plateau,
    "linear": linear,
    "sequential": sequential,
}


def choose_schedule(node: Node, report: Report) -> Chosen | None:
    """The `schedule:` section; parts of a sequence first, so that each mistake has its place."""
    section = full(node)
    name = section.map().get("name")
    if name is not None and name.value == "sequential":
        inside = section.map().get("parts")
        found = [choose_schedule(part, report) for part in (inside.list() if inside else [])]
        if None in found:
            return None
    return choose("schedule", node, SCHEDULES, report)
