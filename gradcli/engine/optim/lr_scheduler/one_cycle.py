"""OneCycleLR: up to a large rate and down to almost nothing, the momentum the other way."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.engine.kind import Count, NotNegative, Portion, Positive
from gradcli.engine.optim.curves import Anneal, Cycle
from gradcli.engine.optim.lr_scheduler.scheduler import Epoch, LRScheduler, each_group
from gradcli.engine.optim.optimizer import Group, Optimizer
from gradcli.errors import OptionError, RangeError
from gradcli.wording import quantity


class OneCycleLR(LRScheduler):
    """One cycle (Smith and Topin 2018): max_lr / div_factor, max_lr, then its final share.

    With cycle_momentum the momentum (the first of betas) goes from max_momentum to base_momentum
    and back. That is an option of the optimizer: a captured step is recorded anew for each value.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: NotNegative | Sequence[NotNegative],
        total_steps: Count | None = None,
        epochs: Count | None = None,
        steps_per_epoch: Count | None = None,
        pct_start: Portion = 0.3,
        anneal_strategy: Anneal = "cos",
        cycle_momentum: bool = True,
        base_momentum: NotNegative | Sequence[NotNegative] = 0.85,
        max_momentum: NotNegative | Sequence[NotNegative] = 0.95,
        div_factor: Positive = 25.0,
        final_div_factor: Positive = 1e4,
        three_phase: bool = False,
        last_epoch: Epoch = -1,
    ) -> None:
        self.total_steps = _length(total_steps, epochs, steps_per_epoch)
        if cycle_momentum and not {"momentum", "betas"} & optimizer.defaults.keys():
            raise OptionError(
                f"OneCycleLR: {type(optimizer).__name__} has neither momentum nor betas to cycle; "
                "set cycle_momentum to False"
            )
        self.pct_start = pct_start
        self.anneal_strategy: Anneal = anneal_strategy
        self.three_phase = three_phase
        self.div_factor = div_factor
        self.final_div_factor = final_div_factor
        self.cycle_momentum = cycle_momentum
        self.max_lrs = each_group("OneCycleLR: max_lr", max_lr, optimizer)
        self.max_momentums = each_group("OneCycleLR: max_momentum", max_momentum, optimizer)
        self.base_momentums = each_group("OneCycleLR: base_momentum", base_momentum, optimizer)
        if last_epoch == -1:
            for group, peak in zip(optimizer.param_groups, self.max_lrs, strict=True):
                group["initial_lr"] = peak / div_factor
        super().__init__(optimizer, last_epoch)

    def rates(self, epoch: int) -> list[float]:
        """The rates between the ends of the phase."""
        if epoch > self.total_steps:
            raise RangeError(
                f"OneCycleLR: was made for {quantity(self.total_steps, 'step')}, this is step "
                f"{epoch}"
            )
        return [
            self._cycle().at(epoch, base, peak, base / self.final_div_factor)
            for base, peak in zip(self.base_lrs, self.max_lrs, strict=True)
        ]

    def _cycle(self) -> Cycle:
        return Cycle(self.total_steps, self.pct_start, self.three_phase, self.anneal_strategy)

    def _set(self, rates: list[float]) -> None:
        super()._set(rates)
        if not self.cycle_momentum:
            return
        for group, high, low in zip(
            self.optimizer.param_groups, self.max_momentums, self.base_momentums, strict=True
        ):
            _give_momentum(group, self._cycle().at(self.last_epoch, high, low, high))


def _length(total: int | None, epochs: int | None, each: int | None) -> int:
    if total is not None:
        return total
    if epochs is None or each is None:
        raise OptionError("OneCycleLR: give total_steps, or both epochs and steps_per_epoch")
    return epochs * each


def _give_momentum(group: Group, momentum: float) -> None:
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum
