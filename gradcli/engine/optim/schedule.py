"""Schedules: what the learning rate is multiplied by, as a function of the step and nothing else.

Steps count from 0. During the first `warmup` steps the multiplier rises in a straight line; what
falls later begins after that. Past `total` steps the last value holds. Only a Plateau depends on
more, the figures it has watched; those are its state, which checkpoints keep.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradcli.engine.optim.curves import (
    ABSOLUTE,
    CURVES,
    RELATIVE,
    Patience,
    half_cosine,
    in_cycle,
    one_cycle_phase,
)
from gradcli.errors import OptionError


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The multiplier of the learning rate over a training of `total` steps."""

    total: int
    warmup: int = 0

    def __post_init__(self) -> None:
        if self.total < 0 or self.warmup < 0:
            raise OptionError(
                f"{self._name}: total and warmup must be 0 or more, "
                f"got {self.total} and {self.warmup}"
            )

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
        """Take note of an evaluation; only a Plateau does."""

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


@dataclass(frozen=True, kw_only=True)
class Constant(Schedule):
    """Always 1."""


@dataclass(frozen=True, init=False)
class Step(Schedule):
    """Times `factor` from each of the steps `at` on."""

    at: tuple[int, ...]
    drop: float

    def __init__(
        self, *, total: int, at: Sequence[int], factor: float = 0.1, warmup: int = 0
    ) -> None:
        # Written out because the argument shares its name with the method factor().
        super().__init__(total=total, warmup=warmup)
        object.__setattr__(self, "at", tuple(at))
        object.__setattr__(self, "drop", factor)
        if list(at) != sorted(set(at)) or any(step < 0 for step in at):
            raise OptionError(f"Step: at must be rising numbers of steps, got {list(at)}")
        if not factor >= 0:
            raise OptionError(f"Step: factor must be 0 or more, got {factor}")

    def after_warmup(self, step: int) -> float:
        """Drop to the power of how many of `at` have come."""
        return float(self.drop ** bisect_right(self.at, step))


@dataclass(frozen=True, kw_only=True)
class _Falling(Schedule):
    final: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.final >= 0:
            raise OptionError(f"{self._name}: final must be 0 or more, got {self.final}")


@dataclass(frozen=True, kw_only=True)
class Cosine(_Falling):
    """From 1 to `final` along half a cosine (Loshchilov and Hutter 2017).

    With `restart` the first fall takes that many steps, each further one `stretch` times as many
    as the last, and the next begins at 1.
    """

    restart: int | None = None
    stretch: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stretch < 1 or (self.restart is not None and self.restart < 1):
            raise OptionError(
                f"Cosine: restart and stretch must be 1 or more, got {self.restart} and "
                f"{self.stretch}"
            )

    def after_warmup(self, step: int) -> float:
        """(1 - final) (1 + cos(pi progress)) / 2 + final."""
        if self.restart is None:
            return half_cosine(1.0, self.final, self.progress(step))
        time, length = in_cycle(self.after(step), self.restart, self.stretch)
        return half_cosine(1.0, self.final, time / length)


@dataclass(frozen=True, kw_only=True)
class Linear(_Falling):
    """From 1 to `final` in a straight line."""

    def after_warmup(self, step: int) -> float:
        """1 + (final - 1) progress."""
        return 1 + (self.final - 1) * self.progress(step)


@dataclass(frozen=True, kw_only=True)
class Polynomial(_Falling):
    """From 1 to `final` along a power of what is left; power 1 is a straight line."""

    power: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.power > 0:
            raise OptionError(f"Polynomial: power must be above 0, got {self.power}")

    def after_warmup(self, step: int) -> float:
        """Final + (1 - final) (1 - progress)^power."""
        return float(self.final + (1 - self.final) * (1 - self.progress(step)) ** self.power)


@dataclass(frozen=True, init=False)
class Exponential(Schedule):
    """Times `factor` in every `every` steps, a little at each."""

    base: float
    every: int

    def __init__(self, *, total: int, factor: float, every: int = 1, warmup: int = 0) -> None:
        super().__init__(total=total, warmup=warmup)
        object.__setattr__(self, "base", factor)
        object.__setattr__(self, "every", every)
        if not factor > 0 or every < 1:
            raise OptionError(
                f"Exponential: factor must be above 0 and every 1 or more, got {factor} and {every}"
            )

    def after_warmup(self, step: int) -> float:
        """The factor to the power of steps / every."""
        return float(self.base ** (self.after(step) / self.every))


@dataclass(frozen=True, kw_only=True)
class OneCycle(Schedule):
    """From `start` to 1 in a share `rise` of the steps, then to `final` (Smith and Topin 2018).

    With three_phase back to `start` as fast as it came, and to `final` from there.
    """

    rise: float = 0.3
    start: float = 1 / 25
    final: float = 1 / 25e4
    anneal: str = "cos"
    three_phase: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.anneal not in CURVES:
            raise OptionError(f"OneCycle: anneal must be 'cos' or 'linear', got {self.anneal!r}")
        if not 0 <= self.rise <= (0.5 if self.three_phase else 1):
            raise OptionError(
                f"OneCycle: rise must be from 0 to 1, with three phases to 0.5, got {self.rise}"
            )

    def after_warmup(self, step: int) -> float:
        """Between the two ends of the phase."""
        length = max(1, self.total - self.warmup)
        phase, done = one_cycle_phase(self.after(step), length, self.rise, self.three_phase)
        ways = [self.start, 1.0, *([self.start] if self.three_phase else []), self.final]
        return CURVES[self.anneal](ways[phase], ways[phase + 1], done)


@dataclass
class _Seen:
    """What a Plateau has watched, and how often it has fallen."""

    patience: Patience
    falls: int = 0


@dataclass(frozen=True, init=False)
class Plateau(Schedule):
    """Times `factor`, down to `final`, whenever `metric` has not become better for a while.

    That is for more than `patience` evaluations, of which those of the `cooldown` after a fall do
    not count. Better means by more than `threshold`, a share of the best or with threshold_mode
    "abs" a distance.
    """

    metric: str
    drop: float
    final: float
    _seen: _Seen = field(compare=False)

    def __init__(
        self,
        *,
        total: int,
        metric: str,
        rising: bool,
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = RELATIVE,
        cooldown: int = 0,
        final: float = 0.0,
        warmup: int = 0,
    ) -> None:
        super().__init__(total=total, warmup=warmup)
        if not 0 <= factor < 1:
            raise OptionError(f"Plateau: factor must be from 0 to below 1, got {factor}")
        if threshold_mode not in (RELATIVE, ABSOLUTE):
            raise OptionError(
                f"Plateau: threshold_mode must be 'rel' or 'abs', got {threshold_mode!r}"
            )
        judge = Patience(not rising, patience, threshold, threshold_mode, cooldown)
        for name, value in (("metric", metric), ("drop", factor), ("final", final)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_seen", _Seen(judge))

    def after_warmup(self, step: int) -> float:
        """The factor to the power of how often it fell."""
        del step
        return max(float(self.drop**self._seen.falls), self.final)

    def watch(self, figures: Mapping[str, float]) -> None:
        """Fall when the patience has run out."""
        if self.metric in figures:
            self._seen.falls += self._seen.patience.ran_out(figures[self.metric])

    def state_dict(self) -> dict[str, Any]:
        """The best figure, None before there is any, and the counts."""
        judge = self._seen.patience
        best = judge.best if math.isfinite(judge.best) else None
        return {
            "best": best,
            "bad": judge.bad,
            "resting": judge.resting,
            "falls": self._seen.falls,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over the best figure and the counts."""
        judge = self._seen.patience
        if state["best"] is not None:
            judge.best = float(state["best"])
        judge.bad, judge.resting = int(state["bad"]), int(state["resting"])
        self._seen.falls = int(state["falls"])


@dataclass(frozen=True, kw_only=True)
class Sequential(Schedule):
    """The first of `parts` up to the first of the steps `at`, then the second, each from 0."""

    parts: tuple[Schedule, ...]
    at: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.at) != len(self.parts) - 1 or list(self.at) != sorted(set(self.at)):
            raise OptionError(
                f"Sequential: {len(self.parts)} parts need {len(self.parts) - 1} rising steps "
                f"between them, got {list(self.at)}"
            )

    def after_warmup(self, step: int) -> float:
        """The multiplier of the part whose turn it is."""
        turn = bisect_right(self.at, step)
        return self.parts[turn].factor(step - self.at[turn - 1] if turn else step)
