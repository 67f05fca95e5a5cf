"""Schedulers that multiply the first rate by a function of the count."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import InitVar
from math import inf
from typing import Annotated

from gradcli.engine.kind import Count, Kind, NotNegative, Portion, Whole, within
from gradcli.engine.optim.curves import half_cosine, in_cycle, power
from gradcli.engine.optim.lr_scheduler.scheduler import DeclaredScheduler, Epoch, LRScheduler
from gradcli.engine.optim.optimizer import Optimizer
from gradcli.errors import OptionError

Factor = Callable[[int], float]
Start = Annotated[float, within("a number above 0, up to 1", gt=0, le=1)]


class LambdaLR(DeclaredScheduler):
    """lr0 f(epoch), f one function or one for each group."""

    carries = False

    lr_lambda: InitVar[Factor | Sequence[Factor]]
    last_epoch: Epoch = -1

    def __post_init__(self, lr_lambda: Factor | Sequence[Factor]) -> None:
        groups = len(self.optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * groups if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != groups:
            count = len(self.lr_lambdas)
            raise OptionError(f"{self._name}: lr_lambda must be one or {groups}, got {count}")
        super().__post_init__()

    def rates(self, epoch: int) -> list[float]:
        """The first rates times what the functions give."""
        return self._times(self.base_lrs, epoch)

    def _times(self, rates: list[float], epoch: int) -> list[float]:
        """What the functions give must be numbers."""
        number = Kind.of(float)
        factors = [
            number.convert_argument(self._name, "what lr_lambda gives", f(epoch))
            for f in self.lr_lambdas
        ]
        return [rate * factor for rate, factor in zip(rates, factors, strict=True)]


class MultiplicativeLR(LambdaLR):
    """lr0 f(1) f(2) ... f(epoch), f one function or one for each group."""

    def rates(self, epoch: int) -> list[float]:
        """The rates as they are, times what the functions give now, which is 1 at the start."""
        return self._times(self._rates_now(), epoch) if epoch else self._rates_now()


class StepLR(DeclaredScheduler):
    """lr0 gamma^(epoch // step_size)."""

    step_size: Count
    gamma: NotNegative = 0.1
    last_epoch: Epoch = -1

    def factor(self, epoch: int) -> float:
        """Gamma for each whole stretch of step_size."""
        return power(self.gamma, epoch // self.step_size)


class MultiStepLR(DeclaredScheduler):
    """lr0 gamma^(how many milestones have come); one that is listed twice counts twice.

    Milestones before the first count never come.
    """

    milestones: Sequence[int]
    gamma: NotNegative = 0.1
    last_epoch: Epoch = -1

    def __post_init__(self) -> None:
        self.milestones = sorted(self.milestones)
        super().__post_init__()

    def factor(self, epoch: int) -> float:
        """Gamma for each milestone up to here."""
        before = bisect_left(self.milestones, 0)
        return power(self.gamma, bisect_right(self.milestones, epoch) - before)


class ConstantLR(LRScheduler):
    """lr0 factor for the first total_iters counts, lr0 from there on; for ever if that is 0."""

    carries = True

    def __init__(
        self,
        optimizer: Optimizer,
        factor: Portion = 1 / 3,
        total_iters: Whole = 5,
        last_epoch: Epoch = -1,
    ) -> None:
        self.start_factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """The factor, and 1 after it."""
        return 1.0 if 0 < self.total_iters <= epoch else self.start_factor


class LinearLR(DeclaredScheduler):
    """lr0 times a factor that goes in a straight line from start_factor to end_factor.

    With a total_iters of 0 it stays at start_factor.
    """

    start_factor: Start = 1 / 3
    end_factor: Portion = 1.0
    total_iters: Whole = 5
    last_epoch: Epoch = -1

    def factor(self, epoch: int) -> float:
        """The point of the line, which ends after total_iters."""
        progress = min(epoch, self.total_iters) / self.total_iters if self.total_iters > 0 else 0.0
        return self.start_factor + (self.end_factor - self.start_factor) * progress


class ExponentialLR(DeclaredScheduler):
    """lr0 gamma^epoch."""

    gamma: NotNegative
    last_epoch: Epoch = -1

    def factor(self, epoch: int) -> float:
        """Gamma once for each count."""
        return power(self.gamma, epoch)


class PolynomialLR(DeclaredScheduler):
    """lr0 (1 - epoch / total_iters)^power, 0 after total_iters."""

    total_iters: Count = 5
    power: NotNegative = 1.0
    last_epoch: Epoch = -1

    def factor(self, epoch: int) -> float:
        """What is left, to the power."""
        return power(1 - min(epoch, self.total_iters) / self.total_iters, self.power)


class CosineAnnealingLR(DeclaredScheduler):
    """From lr0 to eta_min along half a cosine in T_max counts, and up again behind that."""

    T_max: Count
    eta_min: NotNegative = 0.0
    last_epoch: Epoch = -1

    def rates(self, epoch: int) -> list[float]:
        """eta_min + (lr0 - eta_min) (1 + cos(pi epoch / T_max)) / 2."""
        return [half_cosine(base, self.eta_min, epoch / self.T_max) for base in self.base_lrs]

    def carried(self, base: float, rate: float, epoch: int) -> float:
        """The distance to eta_min shrinks as it does from lr0; at the bottom it begins to rise."""
        before = half_cosine(base, self.eta_min, (epoch - 1) / self.T_max) - self.eta_min
        now = half_cosine(base, self.eta_min, epoch / self.T_max) - self.eta_min
        if epoch == 0:
            return rate
        bottom = (epoch - 1 - self.T_max) % (2 * self.T_max) == 0
        return (
            rate + now
            if bottom or not before
            else self.eta_min + (rate - self.eta_min) * now / before
        )


class CosineAnnealingWarmRestarts(DeclaredScheduler):
    """From lr0 to eta_min along half a cosine, again and again (Loshchilov and Hutter 2017).

    The first time takes T_0 counts, each further one T_mult times as many as the last.
    """

    carries = False

    T_0: Count
    T_mult: Count = 1
    eta_min: NotNegative = 0.0
    last_epoch: Epoch = -1

    def rates(self, epoch: float) -> list[float]:
        """eta_min + (lr0 - eta_min) (1 + cos(pi T_cur / T_i)) / 2."""
        current, length = in_cycle(epoch, self.T_0, self.T_mult)
        return [half_cosine(base, self.eta_min, current / length) for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Count one further, or go to an epoch, which may be a fraction, such as 2.25."""
        if epoch is None:
            self.go_to(self.last_epoch + 1)
            return
        if not 0 <= epoch < inf:
            raise OptionError(f"CosineAnnealingWarmRestarts: epoch must be 0 or more, got {epoch}")
        self.last_epoch = int(epoch)
        self._set(self.rates(epoch))
