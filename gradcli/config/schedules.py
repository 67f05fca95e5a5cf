"""Schedules by name: the engine's classes, with lengths as steps or shares of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast

from gradcli.config.fields import NOT_EMPTY, StepsOrPercent
from gradcli.config.merge import full
from gradcli.config.node import ErrorReport, YamlNode
from gradcli.config.row import REQUIRED, Row
from gradcli.config.schema import schema_of
from gradcli.config.sections import NamedSection, choose
from gradcli.dataclass import dataclass
from gradcli.engine.kind import Bound, Portion, Share
from gradcli.engine.optim import schedule as kinds
from gradcli.errors import OptionError
from gradcli.train.job import Figure
from gradcli.wording import quantity, verb

Points = Annotated[list[StepsOrPercent], Bound("a list of numbers of steps or shares such as 30%")]
Parts = Annotated[list[Any], NOT_EMPTY, Bound("a list of schedules")]


def steps_of(value: int | str, total: int) -> int:
    """A number of steps, or a share of the run such as 5%."""
    if isinstance(value, int):
        return value
    return round(float(value.rstrip("%")) / 100 * total)


@dataclass(frozen=True)
class ScheduleSpec:
    """A schedule before the length of the run is known.

    Attributes:
        kind: its class.
        values: its arguments, with lengths and points in the run as written.
        parts: schedules between the points `at`, each with the length between its two as its run.
    """

    kind: type[kinds.Schedule]
    values: Mapping[str, Any]
    parts: tuple[ScheduleSpec, ...] = ()

    @property
    def warmup(self) -> int | str:
        """The warm-up as written: a number of steps or a share of the run."""
        value: int | str = self.values["warmup"]
        return value

    @property
    def marks(self) -> tuple[int | str, ...]:
        """Points in the run, as written."""
        return tuple(self.values.get("at") or ())

    @property
    def metric(self) -> str | None:
        """The figure that it watches."""
        return self.values.get("metric")

    def schedule(self, total: int, rising: bool = False) -> kinds.Schedule:
        """The schedule of a run, or of a part of one, of `total` steps.

        A figure that it watches is better the higher it is where that is `rising`.
        """
        options = {key: _in_steps(key, value, total) for key, value in self.values.items()}
        if self.metric:
            options["rising"] = rising
        if self.parts:
            options |= self._parts(options["at"], total)
        return self.kind(total=total, **options)

    def _parts(self, marks: tuple[int, ...], total: int) -> dict[str, Any]:
        begins = [0, *marks] if total else [0] * len(self.parts)
        ends = [*begins[1:], total]
        spans = zip(self.parts, begins, ends, strict=True)
        schedules = tuple(part.schedule(max(0, end - begin)) for part, begin, end in spans)
        return {"parts": schedules if total else schedules[:1]}


def _in_steps(key: str, value: Any, total: int) -> Any:
    """A value of a run of so many steps; lengths have at least one."""
    if value is None:
        return None
    if key == "at":  # a run without steps has no points to mark; all of them would be step 0
        return tuple(steps_of(mark, total) for mark in value if total)
    if key in ("every", "restart"):
        return max(1, steps_of(value, total))
    return steps_of(value, total) if key == "warmup" else value


class _Schedule(Row):
    """A class of schedules, whose lengths and points stand in YAML as steps or shares."""

    def __call__(self, **values: Any) -> ScheduleSpec:
        plan = ScheduleSpec(cast(type[kinds.Schedule], self.make), values)
        self.attempt(lambda: plan.schedule(0))
        return plan


def _row(
    kind: type[kinds.Schedule], leave: str = "", defaults: Mapping[str, Any] = {}, **types: Any
) -> _Schedule:
    shared: dict[str, Any] = {"warmup": StepsOrPercent, "final": Portion, "start": Portion}
    return _Schedule(
        kind, leave=("total", "rising", leave), types=shared | types, defaults=defaults
    )


def sequential(parts: Parts, at: Points, *, warmup: StepsOrPercent = 0) -> ScheduleSpec:
    """One schedule up to each point in `at`, and one after it; each treats its part as a run."""
    plans = tuple(_part(part) for part in parts)
    if len(at) != len(plans) - 1:
        raise OptionError(
            f"{quantity(len(plans), 'part')} {verb(len(plans), 'needs', 'need')} "
            f"{quantity(len(plans) - 1, 'point')} between them, at has {len(at)}"
        )
    if any(part.metric for part in plans):
        raise OptionError("a plateau watches the whole run, it cannot be a part")
    return ScheduleSpec(kinds.SequentialSchedule, {"at": at, "warmup": warmup}, plans)


def _part(value: Any) -> ScheduleSpec:
    """Build a part that `choose_schedule` has checked."""
    keys = {"name": value} if isinstance(value, str) else dict(value)
    make = SCHEDULES[keys.pop("name")]
    schema = schema_of(make)
    plan: ScheduleSpec = make(**schema.values(keys))
    return plan


SCHEDULES: dict[str, Callable[..., ScheduleSpec]] = {
    "constant": _row(kinds.ConstantSchedule),
    "step": _row(kinds.StepSchedule, at=Points | None, every=StepsOrPercent | None, factor=Share),
    "multi_step": _row(
        kinds.StepSchedule, leave="every", defaults={"at": REQUIRED}, at=Points, factor=Share
    ),
    "exponential": _row(kinds.ExponentialSchedule, every=StepsOrPercent),
    "polynomial": _row(kinds.PolynomialSchedule),
    "cosine": _row(kinds.CosineSchedule, restart=StepsOrPercent | None),
    "one_cycle": _row(kinds.OneCycleSchedule),
    "plateau": _row(kinds.PlateauSchedule, defaults={"metric": "val.loss"}, metric=Figure),
    "linear": _row(kinds.LinearSchedule),
    "sequential": sequential,
}


def choose_schedule(node: YamlNode, report: ErrorReport) -> NamedSection | None:
    """Read the `schedule:` section, the parts of a sequence first: their errors have places."""
    section = full(node)
    name = section.map().get("name")
    if name is not None and name.value == "sequential":
        inside = section.map().get("parts")
        choices = [choose_schedule(part, report) for part in (inside.list() if inside else [])]
        if None in choices:
            return None
    return choose("schedule", node, SCHEDULES, report)
