"""SGD: stochastic gradient descent, with momentum where wanted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradcli.engine.array import Array, run
from gradcli.engine.kind import NotNegative
from gradcli.engine.optim.optimizer import Group, Optimizer, options_in
from gradcli.errors import OptionError


class SGD(Optimizer):
    """g += weight_decay w; m = momentum m + (1 - dampening) g, g itself at first; w -= lr m.

    With nesterov, w -= lr (g + momentum m). Without momentum, w -= lr g.
    """

    state_names = ("momentum_buffer",)

    def __init__(
        self,
        params: Iterable[Any],
        lr: NotNegative = 1e-3,
        momentum: NotNegative = 0.0,
        dampening: float = 0.0,
        weight_decay: NotNegative = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, options_in(locals()))

    def _check(self, group: Group) -> None:
        super()._check(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise OptionError("SGD: nesterov needs momentum above 0 and dampening 0")

    def kept_for(self, group: Group) -> tuple[str, ...]:
        """The moving sum of gradients, where there is momentum."""
        return self.state_names if group["momentum"] else ()

    def update(
        self, group: Group, grad: Array, hyper: Array, parameter: Array, state: list[Array]
    ) -> None:
        """One step of one parameter."""
        if not state:
            run("sgd_step", grad, hyper, parameter, options=(group["weight_decay"],))
            return
        options = (group["weight_decay"], group["momentum"], group["dampening"], group["nesterov"])
        run("sgd_momentum_step", grad, hyper, parameter, *state, options=options)
