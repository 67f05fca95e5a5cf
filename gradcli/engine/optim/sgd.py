"""SGD: stochastic gradient descent, with momentum where wanted."""

from __future__ import annotations

from gradcli.engine.kind import NotNegative
from gradcli.engine.optim.declared import Call, KernelOptimizer
from gradcli.engine.optim.optimizer import Group
from gradcli.errors import OptionError


class SGD(KernelOptimizer):
    """g += weight_decay w; m = momentum m + (1 - dampening) g, g itself at first; w -= lr m.

    With nesterov, w -= lr (g + momentum m). Without momentum, w -= lr g.
    """

    state_names = ("momentum_buffer",)

    lr: NotNegative = 1e-3
    momentum: NotNegative = 0.0
    dampening: float = 0.0
    weight_decay: NotNegative = 0.0
    nesterov: bool = False

    def _check(self, group: Group) -> None:
        super()._check(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise OptionError("SGD: nesterov needs momentum above 0 and dampening 0")

    def kept_for(self, group: Group) -> tuple[str, ...]:
        """The moving sum of gradients, where there is momentum."""
        return self.state_names if group["momentum"] else ()

    def call(self, group: Group) -> Call:
        """The kernel, and what it reads."""
        decay, momentum = group["weight_decay"], group["momentum"]
        if not momentum:
            return "sgd_step", (decay,)
        return "sgd_momentum_step", (decay, momentum, group["dampening"], group["nesterov"])
