"""Schedules: what the learning rate is multiplied by, as a function of the step and nothing else.

Steps count from 0. During the first `warmup` steps the multiplier rises in a straight line; what
falls later begins after that. Past `total` steps the last value holds. Only a PlateauSchedule
depends on more, the figures it has watched; those are its state, which checkpoints keep.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, dataclass_transform

from gradcli import deprecated
from gradcli.dataclass import dataclass
from gradcli.engine.constructor import checked_constructor, in_library
from gradcli.engine.kind import Count, NotNegative, Portion, Positive, Share, Whole
from gradcli.engine.optim.curves import (
    RELATIVE,
    Anneal,
    Cycle,
    Measure,
    Patience,
    half_cosine,
    in_cycle,
    power,
    straight,
)
from gradcli.errors import OptionError
from gradcli.wording import quantity, verb

_STATE = ("best", "bad", "resting", "falls")  # of a Patience: what checkpoints keep


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class _KeywordClass:
    """Subclasses are frozen dataclasses, whose arguments go by name and are checked."""

    def __init_subclass__(cls) -> None:
        if in_library(cls):
            init = "__init__" not in vars(cls)
            checked_constructor(dataclass(frozen=True, kw_only=True, init=init)(cls))


class Schedule(_KeywordClass):
    """The multiplier of the learning rate over a training of `total` steps."""

    total: Whole
    warmup: Whole = 0

    @property
    def _name(self) -> str:
        return type(self).__name__

    def factor(self, step: int) -> float:
        """The multiplier at a step."""
        if step < 0:
            raise OptionError(f"{self._name}: a step must be 0 or more, got {step}")
        rising = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        return rising * self.after_warmup(step)

    def after_warmup(self, step: int) -> float:
        """The multiplier without the warm-up."""
        del step
        return 1.0

    def after(self, step: int) -> int:
        """How many steps have come since the warm-up; past the end as many as at the last one."""
        return max(0, min(step, self.total - 1) - self.warmup)

    def watch(self, figures: Mapping[str, float]) -> None:
        """Take note of an evaluation; only a PlateauSchedule does."""

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run must know."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""

    def progress(self, step: int) -> float:
        """How much of the training after the warm-up is done: 0 to 1."""
        length = self.total - self.warmup
        if step < self.warmup:
            return 0.0
        return min(1.0, (step - self.warmup) / length) if length > 0 else 1.0


class ConstantSchedule(Schedule):
    """Always 1."""


class StepSchedule(Schedule):
    """Multiplies by `factor` at each of the steps `at`, or every `every` steps."""

    at: tuple[int, ...]
    drop: float

    def __init__(
        self,
        *,
        total: Whole,
        at: Sequence[Whole] | None = None,
        every: Count | None = None,
        factor: NotNegative = 0.1,
        warmup: Whole = 0,
    ) -> None:
        # Written out because the argument shares its name with the method factor().
        super().__init__(total=total, warmup=warmup)
        if (at is None) == (every is None):
            raise OptionError(
                "StepSchedule: needs either at, a list of points, or every, a number of steps"
            )
        drops = tuple(range(every, total, every) if every is not None else at or ())
        object.__setattr__(self, "at", drops)
        object.__setattr__(self, "drop", factor)
        if list(drops) != sorted(set(drops)):
            raise OptionError(f"StepSchedule: at must be rising steps, got {list(drops)}")

    def after_warmup(self, step: int) -> float:
        """Drop to the power of how many of `at` have come."""
        return power(self.drop, bisect_right(self.at, step))


class _Falling(Schedule):
    final: NotNegative = 0.0


class CosineSchedule(_Falling):
    """From 1 to `final` along half a cosine (Loshchilov and Hutter 2017).

    With `restart` the first cycle takes that many steps and each later one `stretch` times as many
    as the last; each cycle starts at 1.
    """

    restart: Count | None = None
    stretch: Count = 1

    def after_warmup(self, step: int) -> float:
        """(1 - final) (1 + cos(pi progress)) / 2 + final."""
        if self.restart is None:
            return half_cosine(1.0, self.final, self.progress(step))
        time, length = in_cycle(self.after(step), self.restart, self.stretch)
        return half_cosine(1.0, self.final, time / length)


class LinearSchedule(_Falling):
    """From 1 to `final` in a straight line."""

    def after_warmup(self, step: int) -> float:
        """1 + (final - 1) progress."""
        return straight(1.0, self.final, self.progress(step))


class PolynomialSchedule(_Falling):
    """From 1 to `final` along a power of the remaining share of steps; power 1 is linear."""

    power: Positive = 1.0

    def after_warmup(self, step: int) -> float:
        """Final + (1 - final) (1 - progress)^power."""
        return self.final + (1 - self.final) * power(1 - self.progress(step), self.power)


class ExponentialSchedule(Schedule):
    """Multiplies by `factor` over every `every` steps, a little at each step."""

    base: float
    every: int

    def __init__(
        self, *, total: Whole, factor: Positive, every: Count = 1, warmup: Whole = 0
    ) -> None:
        super().__init__(total=total, warmup=warmup)
        object.__setattr__(self, "base", factor)
        object.__setattr__(self, "every", every)

    def after_warmup(self, step: int) -> float:
        """The factor to the power of steps / every."""
        return power(self.base, self.after(step) / self.every)


class OneCycleSchedule(Schedule):
    """From `start` to 1 in a share `rise` of the steps, then to `final` (Smith and Topin 2018).

    With three_phase it returns to `start` at the same pace, and then falls to `final`.
    """

    rise: Portion = 0.3
    start: NotNegative = 1 / 25
    final: NotNegative = 1 / 25e4
    anneal: Anneal = "cos"
    three_phase: bool = False

    def __post_init__(self) -> None:
        if self.three_phase and self.rise > 0.5:
            raise OptionError(
                f"OneCycleSchedule: rise must be from 0 to 0.5 with three phases, got {self.rise}"
            )

    def after_warmup(self, step: int) -> float:
        """Between the two ends of the phase."""
        length = max(1, self.total - self.warmup)
        cycle = Cycle(length, self.rise, self.three_phase, self.anneal)
        return cycle.at(self.after(step), self.start, 1.0, self.final)


class PlateauSchedule(Schedule):
    """Multiplies by `factor`, down to `final`, when `metric` stops improving.

    It waits for more than `patience` evaluations; those of the `cooldown` after a reduction do not
    count. An improvement must exceed `threshold`, a share of the best or with threshold_mode "abs"
    a distance.
    """

    metric: str
    drop: float
    final: float
    _patience: Patience = field(compare=False)

    def __init__(
        self,
        *,
        total: Whole,
        metric: str,
        rising: bool,
        factor: Share = 0.1,
        patience: Whole = 10,
        threshold: NotNegative = 1e-4,
        threshold_mode: Measure = RELATIVE,
        cooldown: Whole = 0,
        final: NotNegative = 0.0,
        warmup: Whole = 0,
    ) -> None:
        super().__init__(total=total, warmup=warmup)
        judge = Patience(not rising, patience, threshold, threshold_mode, cooldown)
        values = {"metric": metric, "drop": factor, "final": final, "_patience": judge}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def after_warmup(self, step: int) -> float:
        """The factor to the power of how often it fell."""
        del step
        return max(float(self.drop**self._patience.falls), self.final)

    def watch(self, figures: Mapping[str, float]) -> None:
        """Fall when the patience has run out."""
        if self.metric in figures:
            self._patience.ran_out(figures[self.metric])

    def state_dict(self) -> dict[str, Any]:
        """The best figure, None before there is any, and the counts."""
        numbers = {name: getattr(self._patience, name) for name in _STATE}
        return numbers if math.isfinite(numbers["best"]) else {**numbers, "best": None}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over the best figure and the counts."""
        for name in _STATE:
            if state[name] is not None:
                setattr(self._patience, name, state[name])


class SequentialSchedule(Schedule):
    """The first of `parts` up to the first of the steps `at`, then the second, each from 0."""

    parts: tuple[Schedule, ...]
    at: tuple[Whole, ...]

    def __post_init__(self) -> None:
        if len(self.at) != len(self.parts) - 1 or list(self.at) != sorted(set(self.at)):
            raise OptionError(
                f"SequentialSchedule: {quantity(len(self.parts), 'part')} "
                f"{verb(len(self.parts), 'needs', 'need')} "
                f"{quantity(len(self.parts) - 1, 'rising step')} between them, got {list(self.at)}"
            )

    def after_warmup(self, step: int) -> float:
        """The multiplier of the part whose turn it is."""
        turn = bisect_right(self.at, step)
        return self.parts[turn].factor(step - self.at[turn - 1] if turn else step)


_KINDS = (
    ConstantSchedule,
    StepSchedule,
    CosineSchedule,
    LinearSchedule,
    PolynomialSchedule,
    ExponentialSchedule,
    OneCycleSchedule,
    PlateauSchedule,
    SequentialSchedule,
)
_OLD_NAMES = {kind.__name__.removesuffix("Schedule"): kind.__name__ for kind in _KINDS}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        return deprecated.lookup(__name__, _OLD_NAMES, name)
