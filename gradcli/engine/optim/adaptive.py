"""RMSprop, Adagrad, Adadelta: steps scaled by the squares of past gradients."""

from __future__ import annotations

from gradcli.engine import table
from gradcli.engine.kind import NotNegative, Portion
from gradcli.engine.optim.declared import Call, KernelOptimizer
from gradcli.engine.optim.optimizer import Group
from gradcli.engine.tensor import Tensor

_RMSPROP = {  # centered, with momentum
    (False, False): "rmsprop_step",
    (False, True): "rmsprop_momentum_step",
    (True, False): "rmsprop_centered_step",
    (True, True): "rmsprop_centered_momentum_step",
}


class RMSprop(KernelOptimizer):
    """v = alpha v + (1 - alpha) g^2; w -= lr g / (sqrt(v) + eps) (Hinton 2012).

    With momentum, w -= lr b for b = momentum b + g / (sqrt(v) + eps). If centered, the square of
    the mean gradient is subtracted from v. The weight decay is added to the gradient.
    """

    lr: NotNegative = 1e-2
    alpha: NotNegative = 0.99
    eps: NotNegative = 1e-8
    weight_decay: NotNegative = 0.0
    momentum: NotNegative = 0.0
    centered: bool = False

    def kept_for(self, group: Group) -> tuple[str, ...]:
        """The mean square, and what momentum and centering need."""
        momentum = ("momentum_buffer",) if group["momentum"] else ()
        return ("square_avg", *momentum, *(("grad_avg",) if group["centered"] else ()))

    def call(self, group: Group) -> Call:
        """The kernel, and what it reads."""
        kernel = _RMSPROP[bool(group["centered"]), bool(group["momentum"])]
        return kernel, (group["weight_decay"], group["alpha"], group["eps"], group["momentum"])


class Adagrad(KernelOptimizer):
    """s += g^2; w -= lr / (1 + (step - 1) lr_decay) g / (sqrt(s) + eps) (Duchi et al. 2011).

    The sums begin at initial_accumulator_value. The weight decay is added to the gradient.
    """

    state_names = ("sum",)

    lr: NotNegative = 1e-2
    lr_decay: NotNegative = 0.0
    weight_decay: NotNegative = 0.0
    initial_accumulator_value: NotNegative = 0.0
    eps: NotNegative = 1e-10

    def first_state(self, group: Group, name: str, parameter: Tensor) -> Tensor:
        """The sum of squares before there are any."""
        return table.full_like(parameter, group["initial_accumulator_value"])

    def call(self, group: Group) -> Call:
        """The kernel, and what it reads."""
        return "adagrad_step", (group["weight_decay"], group["lr_decay"], group["eps"])


class Adadelta(KernelOptimizer):
    """w -= lr d for d = sqrt((u + eps) / (v + eps)) g; v and u average g^2 and d^2 (Zeiler 2012).

    The weight decay is added to the gradient.
    """

    state_names = ("square_avg", "acc_delta")

    lr: NotNegative = 1.0
    rho: Portion = 0.9
    eps: NotNegative = 1e-6
    weight_decay: NotNegative = 0.0

    def call(self, group: Group) -> Call:
        """The kernel, and what it reads."""
        return "adadelta_step", (group["weight_decay"], group["rho"], group["eps"])
