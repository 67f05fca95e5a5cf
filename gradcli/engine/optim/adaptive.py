"""RMSprop, Adagrad, Adadelta: steps scaled by the squares of past gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradcli.engine import table
from gradcli.engine.array import Array, run
from gradcli.engine.kind import NotNegative, Portion
from gradcli.engine.optim.optimizer import Group, Optimizer, options_in
from gradcli.engine.tensor import Tensor

_RMSPROP = {  # centered, with momentum
    (False, False): "rmsprop_step",
    (False, True): "rmsprop_momentum_step",
    (True, False): "rmsprop_centered_step",
    (True, True): "rmsprop_centered_momentum_step",
}


class RMSprop(Optimizer):
    """v = alpha v + (1 - alpha) g^2; w -= lr g / (sqrt(v) + eps) (Hinton 2012).

    With momentum, w -= lr b for b = momentum b + g / (sqrt(v) + eps). If centered, the square of
    the mean gradient is taken off v. The weight decay is added to the gradient.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: NotNegative = 1e-2,
        alpha: NotNegative = 0.99,
        eps: NotNegative = 1e-8,
        weight_decay: NotNegative = 0.0,
        momentum: NotNegative = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, options_in(locals()))

    def kept_for(self, group: Group) -> tuple[str, ...]:
        """The mean square, and what momentum and centering need."""
        momentum = ("momentum_buffer",) if group["momentum"] else ()
        return ("square_avg", *momentum, *(("grad_avg",) if group["centered"] else ()))

    def update(
        self, group: Group, grad: Array, hyper: Array, parameter: Array, state: list[Array]
    ) -> None:
        """One step of one parameter."""
        options = (group["weight_decay"], group["alpha"], group["eps"], group["momentum"])
        kernel = _RMSPROP[bool(group["centered"]), bool(group["momentum"])]
        run(kernel, grad, hyper, parameter, *state, options=options)


class Adagrad(Optimizer):
    """s += g^2; w -= lr / (1 + (step - 1) lr_decay) g / (sqrt(s) + eps) (Duchi et al. 2011).

    The sums begin at initial_accumulator_value. The weight decay is added to the gradient.
    """

    state_names = ("sum",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: NotNegative = 1e-2,
        lr_decay: NotNegative = 0.0,
        weight_decay: NotNegative = 0.0,
        initial_accumulator_value: NotNegative = 0.0,
        eps: NotNegative = 1e-10,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, options_in(locals()))

    def first_state(self, group: Group, name: str, parameter: Tensor) -> Tensor:
        """The sum of squares before there are any."""
        first = group["initial_accumulator_value"]
        return table.full_like(parameter, first)

    def update(
        self, group: Group, grad: Array, hyper: Array, parameter: Array, state: list[Array]
    ) -> None:
        """One step of one parameter."""
        options = (group["weight_decay"], group["lr_decay"], group["eps"])
        run("adagrad_step", grad, hyper, parameter, *state, options=options)


class Adadelta(Optimizer):
    """w -= lr d for d = sqrt((u + eps) / (v + eps)) g; v and u average g^2 and d^2 (Zeiler 2012).

    The weight decay is added to the gradient.
    """

    state_names = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: Iterable[Any],
        lr: NotNegative = 1.0,
        rho: Portion = 0.9,
        eps: NotNegative = 1e-6,
        weight_decay: NotNegative = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, options_in(locals()))

    def update(
        self, group: Group, grad: Array, hyper: Array, parameter: Array, state: list[Array]
    ) -> None:
        """One step of one parameter."""
        options = (group["weight_decay"], group["rho"], group["eps"])
        run("adadelta_step", grad, hyper, parameter, *state, options=options)
