"""Adam and AdamW: steps scaled by moving averages of the gradient and of its square."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from gradcli.engine.array import Array, run
from gradcli.engine.optim.optimizer import Group, Optimizer, Rule, at_least_zero, below_one


def _two_below_one(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and len(value) == 2 and all(map(below_one, value))


class Adam(Optimizer):
    """Adaptive moments: w -= lr m / (sqrt(v) + eps), m and v the averages of g and g^2.

    Both averages are corrected for their start (Kingma and Ba 2015). The weight
    decay is added to the gradient: g += weight_decay w.
    """

    state_names = ("exp_avg", "exp_avg_sq")
    decoupled = False
    rules: ClassVar[dict[str, Rule]] = {
        "lr": (at_least_zero, "0 or more"),
        "betas": (_two_below_one, "two numbers from 0 to below 1"),
        "eps": (at_least_zero, "0 or more"),
        "weight_decay": (at_least_zero, "0 or more"),
        "amsgrad": (lambda value: value is False, "False; this version has no amsgrad"),
    }

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
    ) -> None:
        options = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
        }
        super().__init__(params, options)

    def update(
        self, group: Group, grad: Array, hyper: Array, parameter: Array, state: list[Array]
    ) -> None:
        """One step of one parameter."""
        options = (group["weight_decay"], *group["betas"], group["eps"], self.decoupled)
        run("adam_step", grad, hyper, parameter, *state, options=options)


class AdamW(Adam):
    """Adam with the weight decay beside the gradient: w *= 1 - lr weight_decay.

    Loshchilov and Hutter 2019.
    """

    decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad)
