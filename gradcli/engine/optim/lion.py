"""Lion: steps of one size, along the sign of a moving average."""

from __future__ import annotations

from gradcli.engine.kind import NotNegative
from gradcli.engine.optim.declared import Betas, Call, KernelOptimizer
from gradcli.engine.optim.optimizer import Group


class Lion(KernelOptimizer):
    """w -= lr (sign(beta1 m + (1 - beta1) g) + weight_decay w); m = beta2 m + (1 - beta2) g.

    Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", with the decay of their
    program, w *= 1 - lr weight_decay before the step, which is the same. torch has no Lion.
    """

    state_names = ("exp_avg",)

    lr: NotNegative = 1e-4
    betas: Betas = (0.9, 0.99)
    weight_decay: NotNegative = 0.0

    def call(self, group: Group) -> Call:
        """The kernel, and what it reads."""
        return "lion_step", (group["weight_decay"], *group["betas"])
