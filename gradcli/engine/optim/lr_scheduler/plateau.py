"""ReduceLROnPlateau: a smaller rate whenever a figure has not become better for a while."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from gradcli.engine.kind import NotNegative, Share, Whole
from gradcli.engine.optim.curves import RELATIVE, Measure, Patience
from gradcli.engine.optim.lr_scheduler.scheduler import LRScheduler, each_group
from gradcli.engine.optim.optimizer import Optimizer
from gradcli.errors import OptionError

STATE = {"best": "best", "num_bad_epochs": "bad", "cooldown_counter": "resting"}


class ReduceLROnPlateau(LRScheduler):
    """lr becomes max(lr factor, min_lr) once `patience` steps have brought nothing better.

    Better means below best (1 - threshold), or with mode "max" above best (1 + threshold); with
    threshold_mode "abs" by threshold itself. After each change `cooldown` steps count for nothing.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: Share = 0.1,
        patience: Whole = 10,
        threshold: NotNegative = 1e-4,
        threshold_mode: Measure = RELATIVE,
        cooldown: Whole = 0,
        min_lr: NotNegative | Sequence[NotNegative] = 0.0,
        eps: NotNegative = 1e-8,
    ) -> None:
        self._patience = Patience(
            falling=mode == "min",
            patience=patience,
            threshold=threshold,
            kind=threshold_mode,
            cooldown=cooldown,
        )
        self._factor = factor
        self.eps = eps
        self.min_lrs = each_group("ReduceLROnPlateau: min_lr", min_lr, optimizer)
        super().__init__(optimizer)

    def rates(self, epoch: int) -> list[float]:
        """The rates as they are: only figures change them."""
        del epoch
        return self._rates_now()

    def step(self, metrics: Any = math.nan) -> None:
        """Enter a figure: a number, or a tensor of one element."""
        self.last_epoch += 1
        rates = self._rates_now()
        if self.last_epoch and self._patience.ran_out(float(metrics)):
            rates = [self._less(*pair) for pair in zip(rates, self.min_lrs, strict=True)]
        self._set(rates)

    def _less(self, rate: float, least: float) -> float:
        new = max(rate * self._factor, least)
        return new if rate - new > self.eps else rate

    def state_dict(self) -> dict[str, Any]:
        """The count and what has been seen, in torch's names."""
        state = {name: getattr(self._patience, ours) for name, ours in STATE.items()}
        return {**super().state_dict(), **state}

    def load_state_dict(self, state_dict: Mapping[str, object]) -> None:
        """Take over what another one has seen."""
        values = {"base_lrs": self.base_lrs, **state_dict}
        for name, ours in STATE.items():
            if name not in values:
                raise OptionError(
                    f"load_state_dict: ReduceLROnPlateau has no '{name}' in its state"
                )
            setattr(self._patience, ours, values.pop(name))
        super().load_state_dict(values)
