"""Lion: steps of one size, along the sign of a moving average."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradcli.engine.array import Array, run
from gradcli.engine.kind import NotNegative
from gradcli.engine.optim.optimizer import Betas, Group, Optimizer, options_in


class Lion(Optimizer):
    """w -= lr (sign(beta1 m + (1 - beta1) g) + weight_decay w); m = beta2 m + (1 - beta2) g.

    Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", with the decay of their
    program, w *= 1 - lr weight_decay before the step, which is the same. torch has no Lion.
    """

    state_names = ("exp_avg",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: NotNegative = 1e-4,
        betas: Betas = (0.9, 0.99),
        weight_decay: NotNegative = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, options_in(locals()))

    def update(
        self, group: Group, grad: Array, hyper: Array, parameter: Array, state: list[Array]
    ) -> None:
        """One step of one parameter."""
        options = (group["weight_decay"], *group["betas"])
        run("lion_step", grad, hyper, parameter, *state, options=options)
