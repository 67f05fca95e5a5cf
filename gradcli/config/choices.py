"""Losses, optimizers and schedules by name: typed constructors, each the schema of its keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradcli.config.fields import (
    Betas,
    NotNegative,
    Portion,
    Positive,
    Share,
    StepsOrPercent,
)
from gradcli.errors import OptionError

if TYPE_CHECKING:
    from gradcli.engine import Tensor, optim
    from gradcli.train.job import Schedule

LossFunction = Callable[["Tensor", "Tensor"], "Tensor"]
MakeOptimizer = Callable[[Iterable["Tensor"]], "optim.Optimizer"]


@dataclass(frozen=True)
class Loss:
    """A loss and the targets it is for: "labels" (class numbers) or "values"."""

    targets: str
    make: Callable[[], LossFunction]


def cross_entropy(label_smoothing: Portion = 0.0) -> Loss:
    """-log softmax(outputs)[label], the mean over all labels."""

    def make() -> LossFunction:
        from gradcli.engine.nn import functional as F

        def loss(outputs: Tensor, targets: Tensor) -> Tensor:
            # Labels of a sequence are as many single labels; classes stand last.
            rows = outputs.reshape(-1, outputs.shape[-1])
            return F.cross_entropy(rows, targets.reshape(-1), label_smoothing=label_smoothing)

        return loss

    return Loss("labels", make)


def mse() -> Loss:
    """(output - target)^2, the mean over all values."""

    def make() -> LossFunction:
        from gradcli.engine.nn import functional as F

        return lambda outputs, targets: F.mse_loss(outputs.reshape(targets.shape), targets)

    return Loss("values", make)


def sgd(
    lr: NotNegative,
    *,
    momentum: Share = 0.0,
    dampening: Portion = 0.0,
    weight_decay: NotNegative = 0.0,
    nesterov: bool = False,
) -> MakeOptimizer:
    """Gradient descent with momentum."""
    if nesterov and (momentum == 0 or dampening != 0):
        raise OptionError("nesterov needs a momentum above 0 and no dampening")

    def make(parameters: Iterable[Tensor]) -> optim.Optimizer:
        from gradcli.engine import optim

        return optim.SGD(
            parameters,
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
        )

    return make


def adam(
    lr: NotNegative = 1e-3,
    *,
    betas: Betas = (0.9, 0.999),
    eps: Positive = 1e-8,
    weight_decay: NotNegative = 0.0,
) -> MakeOptimizer:
    """Steps scaled by running means of the gradient and its square; decay adds to the gradient."""

    def make(parameters: Iterable[Tensor]) -> optim.Optimizer:
        from gradcli.engine import optim

        return optim.Adam(parameters, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    return make


def adamw(
    lr: NotNegative = 1e-3,
    *,
    betas: Betas = (0.9, 0.999),
    eps: Positive = 1e-8,
    weight_decay: NotNegative = 1e-2,
) -> MakeOptimizer:
    """Adam whose weight decay shrinks the weights directly."""

    def make(parameters: Iterable[Tensor]) -> optim.Optimizer:
        from gradcli.engine import optim

        return optim.AdamW(parameters, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    return make


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


LOSSES: dict[str, Callable[..., Any]] = {"cross_entropy": cross_entropy, "mse": mse}
OPTIMIZERS: dict[str, Callable[..., Any]] = {"sgd": sgd, "adam": adam, "adamw": adamw}
SCHEDULES: dict[str, Callable[..., Any]] = {
    "constant": constant,
    "step": step,
    "cosine": cosine,
    "linear": linear,
}
