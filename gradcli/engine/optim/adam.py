"""Adam and its kin: steps scaled by moving averages of the gradient and of its square."""

from __future__ import annotations

from typing import ClassVar

from gradcli.engine import dtype as dtypes
from gradcli.engine.device import scope
from gradcli.engine.kind import NotNegative
from gradcli.engine.ops.creation.creation import ones
from gradcli.engine.optim.declared import Betas, Call, KernelOptimizer
from gradcli.engine.optim.optimizer import Group
from gradcli.engine.tensor import Tensor


class _Moments(KernelOptimizer):
    """Moving averages of the gradient and of its square, and the options that go with them."""

    state_names: ClassVar[tuple[str, ...]] = ("exp_avg", "exp_avg_sq")

    lr: NotNegative = 1e-3
    betas: Betas = (0.9, 0.999)
    eps: NotNegative = 1e-8
    weight_decay: NotNegative = 0.0


class Adam(_Moments):
    """Adaptive moments: w -= lr m / (sqrt(v) + eps), m and v the averages of g and g^2.

    Both averages are corrected for their start (Kingma and Ba 2015). The weight
    decay is added to the gradient: g += weight_decay w. With amsgrad the largest v so far divides
    (Reddi et al. 2018).
    """

    decoupled = False

    amsgrad: bool = False

    def kept_for(self, group: Group) -> tuple[str, ...]:
        """Both averages, and with amsgrad the largest second one so far."""
        return (*self.state_names, "max_exp_avg_sq") if group["amsgrad"] else self.state_names

    def call(self, group: Group) -> Call:
        """The kernel, and what it reads."""
        kernel = "amsgrad_step" if group["amsgrad"] else "adam_step"
        return kernel, (group["weight_decay"], *group["betas"], group["eps"], self.decoupled)


class AdamW(Adam):
    """Adam with decoupled weight decay: w *= 1 - lr weight_decay.

    Loshchilov and Hutter 2019.
    """

    decoupled = True

    weight_decay: NotNegative = 1e-2


class RAdam(_Moments):
    """Adam with a rectified scale while few gradients are known (Liu et al. 2020).

    w -= lr m rect / (sqrt(v) + eps), and w -= lr m in the first steps; the weight decay is added
    to the gradient, or with decoupled_weight_decay w *= 1 - lr weight_decay.
    """

    decoupled_weight_decay: bool = False

    def call(self, group: Group) -> Call:
        """The kernel, and what it reads."""
        decoupled = group["decoupled_weight_decay"]
        return "radam_step", (group["weight_decay"], *group["betas"], group["eps"], decoupled)


class NAdam(_Moments):
    """Adam with Nesterov's momentum (Dozat 2016), which grows according to momentum_decay.

    w -= lr ((1 - mu) g / (1 - product of mu) + mu' m / (1 - product of mu mu')) / (sqrt(v) + eps).
    """

    state_names = ("exp_avg", "exp_avg_sq", "mu_product")

    lr: NotNegative = 2e-3
    momentum_decay: NotNegative = 4e-3
    decoupled_weight_decay: bool = False

    def first_state(self, group: Group, name: str, parameter: Tensor) -> Tensor:
        """Averages of 0, and the product of no factors."""
        if name == "mu_product":
            with scope.on(parameter.array.storage.device):
                return ones((), dtype=dtypes.float64)
        return super().first_state(group, name, parameter)

    def call(self, group: Group) -> Call:
        """The kernel, and what it reads."""
        options = (group["weight_decay"], *group["betas"], group["eps"])
        more = (group["decoupled_weight_decay"], group["momentum_decay"])
        return "nadam_step", (*options, *more)
