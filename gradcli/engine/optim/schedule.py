"""Schedules: what the learning rate is multiplied by, as a function of the step and nothing else.

Steps count from 0. During the first `warmup` steps the multiplier rises in a straight line; what
falls later begins after that. Past `total` steps the last value holds.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

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
    """From 1 to `final` along half a cosine (Loshchilov and Hutter 2017)."""

    def after_warmup(self, step: int) -> float:
        """(1 - final) (1 + cos(pi progress)) / 2 + final."""
        return self.final + (1 - self.final) * (1 + math.cos(math.pi * self.progress(step))) / 2


@dataclass(frozen=True, kw_only=True)
class Linear(_Falling):
    """From 1 to `final` in a straight line."""

    def after_warmup(self, step: int) -> float:
        """1 + (final - 1) progress."""
        return 1 + (self.final - 1) * self.progress(step)


SCHEDULES: dict[str, type[Schedule]] = {
    "constant": Constant,
    "step": Step,
    "cosine": Cosine,
    "linear": Linear,
}
