"""Adam and its kin: steps scaled by moving averages of the gradient and of its square."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine.array import Array, run
from gradcli.engine.device import place
from gradcli.engine.kind import NotNegative
from gradcli.engine.ops.creation.creation import ones
from gradcli.engine.optim.optimizer import Betas, Group, Optimizer, options_in
from gradcli.engine.tensor import Tensor


class Adam(Optimizer):
    """Adaptive moments: w -= lr m / (sqrt(v) + eps), m and v the averages of g and g^2.

    Both averages are corrected for their start (Kingma and Ba 2015). The weight
    decay is added to the gradient: g += weight_decay w. With amsgrad the largest v so far divides
    (Reddi et al. 2018).
    """

    state_names = ("exp_avg", "exp_avg_sq")
    decoupled = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: NotNegative = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: NotNegative = 1e-8,
        weight_decay: NotNegative = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, options_in(locals()))

    def kept_for(self, group: Group) -> tuple[str, ...]:
        """Both averages, and with amsgrad the largest second one so far."""
        return (*self.state_names, "max_exp_avg_sq") if group["amsgrad"] else self.state_names

    def update(
        self, group: Group, grad: Array, hyper: Array, parameter: Array, state: list[Array]
    ) -> None:
        """One step of one parameter."""
        options = (group["weight_decay"], *group["betas"], group["eps"], self.decoupled)
        run(
            "amsgrad_step" if group["amsgrad"] else "adam_step",
            grad,
            hyper,
            parameter,
            *state,
            options=options,
        )


class AdamW(Adam):
    """Adam with the weight decay beside the gradient: w *= 1 - lr weight_decay.

    Loshchilov and Hutter 2019.
    """

    decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: NotNegative = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: NotNegative = 1e-8,
        weight_decay: NotNegative = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, **options_in(locals()))


class RAdam(Optimizer):
    """Adam whose scale is rectified while few gradients are known (Liu et al. 2020).

    w -= lr m rect / (sqrt(v) + eps), and w -= lr m in the first steps; the weight decay is added
    to the gradient, or with decoupled_weight_decay w *= 1 - lr weight_decay.
    """

    state_names = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Iterable[Any],
        lr: NotNegative = 1e-3,
        betas: Betas = (0.9, 0.999),
        eps: NotNegative = 1e-8,
        weight_decay: NotNegative = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, options_in(locals()))

    def update(
        self, group: Group, grad: Array, hyper: Array, parameter: Array, state: list[Array]
    ) -> None:
        """One step of one parameter."""
        decoupled = group["decoupled_weight_decay"]
        options = (group["weight_decay"], *group["betas"], group["eps"], decoupled)
        run("radam_step", grad, hyper, parameter, *state, options=options)


class NAdam(Optimizer):
    """Adam with Nesterov's momentum (Dozat 2016), which grows as momentum_decay says.

    w -= lr ((1 - mu) g / (1 - product of mu) + mu' m / (1 - product of mu mu')) / (sqrt(v) + eps).
    """

    state_names = ("exp_avg", "exp_avg_sq", "mu_product")

    def __init__(
        self,
        params: Iterable[Any],
        lr: NotNegative = 2e-3,
        betas: Betas = (0.9, 0.999),
        eps: NotNegative = 1e-8,
        weight_decay: NotNegative = 0.0,
        momentum_decay: NotNegative = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, options_in(locals()))

    def first_state(self, group: Group, name: str, parameter: Tensor) -> Tensor:
        """Averages of 0, and the product of no factors."""
        if name == "mu_product":
            with place.on(parameter.array.storage.device):
                return ones((), dtype=dtypes.float64)
        return super().first_state(group, name, parameter)

    def update(
        self, group: Group, grad: Array, hyper: Array, parameter: Array, state: list[Array]
    ) -> None:
        """One step of one parameter."""
        options = (group["weight_decay"], *group["betas"], group["eps"])
        options += (group["decoupled_weight_decay"], group["momentum_decay"])
        run("nadam_step", grad, hyper, parameter, *state, options=options)
