"""Optimizers by name: typed constructors, each the schema of its keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from gradcli.engine.kind import NotNegative, Portion, Positive, Share
from gradcli.engine.optim.optimizer import Betas
from gradcli.errors import OptionError

if TYPE_CHECKING:
    from gradcli.engine import optim

MakeOptimizer = Callable[[Iterable[Any]], "optim.Optimizer"]


def _maker(name: str, **options: Any) -> MakeOptimizer:
    """A function that makes this optimizer of parameters, or of groups of them."""

    def make(parameters: Iterable[Any]) -> optim.Optimizer:
        from gradcli.engine import optim

        return optim.OPTIMIZERS[name](parameters, **options)

    return make


def sgd(
    lr: NotNegative,
    *,
    momentum: Share = 0.0,
    dampening: Portion = 0.0,
    weight_decay: NotNegative = 0.0,
    nesterov: bool = False,
    maximize: bool = False,
) -> MakeOptimizer:
    """Gradient descent with momentum."""
    if nesterov and (momentum == 0 or dampening != 0):
        raise OptionError("nesterov needs a momentum above 0 and no dampening")
    return _maker(
        "sgd",
        lr=lr,
        momentum=momentum,
        dampening=dampening,
        weight_decay=weight_decay,
        nesterov=nesterov,
        maximize=maximize,
    )


def adam(
    lr: NotNegative = 1e-3,
    *,
    betas: Betas = (0.9, 0.999),
    eps: Positive = 1e-8,
    weight_decay: NotNegative = 0.0,
    amsgrad: bool = False,
    maximize: bool = False,
) -> MakeOptimizer:
    """Steps scaled by running means of the gradient and its square; decay adds to the gradient."""
    return _maker(
        "adam",
        lr=lr,
        betas=betas,
        eps=eps,
        weight_decay=weight_decay,
        amsgrad=amsgrad,
        maximize=maximize,
    )


def adamw(
    lr: NotNegative = 1e-3,
    *,
    betas: Betas = (0.9, 0.999),
    eps: Positive = 1e-8,
    weight_decay: NotNegative = 1e-2,
    amsgrad: bool = False,
    maximize: bool = False,
) -> MakeOptimizer:
    """Adam whose weight decay shrinks the weights directly."""
    return _maker(
        "adamw",
        lr=lr,
        betas=betas,
        eps=eps,
        weight_decay=weight_decay,
        amsgrad=amsgrad,
        maximize=maximize,
    )


def nadam(
    lr: NotNegative = 2e-3,
    *,
    betas: Betas = (0.9, 0.999),
    eps: Positive = 1e-8,
    weight_decay: NotNegative = 0.0,
    momentum_decay: NotNegative = 4e-3,
    decoupled_weight_decay: bool = False,
    maximize: bool = False,
) -> MakeOptimizer:
    """Adam with Nesterov's momentum."""
    return _maker(
        "nadam",
        lr=lr,
        betas=betas,
        eps=eps,
        weight_decay=weight_decay,
        momentum_decay=momentum_decay,
        decoupled_weight_decay=decoupled_weight_decay,
        maximize=maximize,
    )


def radam(
    lr: NotNegative = 1e-3,
    *,
    betas: Betas = (0.9, 0.999),
    eps: Positive = 1e-8,
    weight_decay: NotNegative = 0.0,
    decoupled_weight_decay: bool = False,
    maximize: bool = False,
) -> MakeOptimizer:
    """Adam that holds back its scale while few gradients are known."""
    return _maker(
        "radam",
        lr=lr,
        betas=betas,
        eps=eps,
        weight_decay=weight_decay,
        decoupled_weight_decay=decoupled_weight_decay,
        maximize=maximize,
    )


def rmsprop(
    lr: NotNegative = 1e-2,
    *,
    alpha: Share = 0.99,
    eps: Positive = 1e-8,
    weight_decay: NotNegative = 0.0,
    momentum: Share = 0.0,
    centered: bool = False,
    maximize: bool = False,
) -> MakeOptimizer:
    """Steps divided by the root of the mean square of the gradient."""
    return _maker(
        "rmsprop",
        lr=lr,
        alpha=alpha,
        eps=eps,
        weight_decay=weight_decay,
        momentum=momentum,
        centered=centered,
        maximize=maximize,
    )


def adagrad(
    lr: NotNegative = 1e-2,
    *,
    lr_decay: NotNegative = 0.0,
    weight_decay: NotNegative = 0.0,
    initial_accumulator_value: NotNegative = 0.0,
    eps: Positive = 1e-10,
    maximize: bool = False,
) -> MakeOptimizer:
    """Steps divided by the root of the sum of all squared gradients."""
    return _maker(
        "adagrad",
        lr=lr,
        lr_decay=lr_decay,
        weight_decay=weight_decay,
        initial_accumulator_value=initial_accumulator_value,
        eps=eps,
        maximize=maximize,
    )


def adadelta(
    lr: NotNegative = 1.0,
    *,
    rho: Portion = 0.9,
    eps: Positive = 1e-6,
    weight_decay: NotNegative = 0.0,
    maximize: bool = False,
) -> MakeOptimizer:
    """Steps as long as the last ones were, by the gradients of the same time."""
    return _maker(
        "adadelta",
        lr=lr,
        rho=rho,
        eps=eps,
        weight_decay=weight_decay,
        maximize=maximize,
    )


def lion(
    lr: NotNegative = 1e-4,
    *,
    betas: Betas = (0.9, 0.99),
    weight_decay: NotNegative = 0.0,
    maximize: bool = False,
) -> MakeOptimizer:
    """Steps of one size, along the sign of a running mean of the gradient."""
    return _maker(
        "lion",
        lr=lr,
        betas=betas,
        weight_decay=weight_decay,
        maximize=maximize,
    )


OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "sgd": sgd,
    "adam": adam,
    "adamw": adamw,
    "nadam": nadam,
    "radam": radam,
    "rmsprop": rmsprop,
    "adagrad": adagrad,
    "adadelta": adadelta,
    "lion": lion,
}
