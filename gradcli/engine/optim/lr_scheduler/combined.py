"""Schedulers made of schedulers: one after another, and all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.engine.constructor import checked_constructor
from gradcli.engine.kind import Whole
from gradcli.engine.optim.lr_scheduler.plateau import ReduceLROnPlateau
from gradcli.engine.optim.lr_scheduler.scheduler import Epoch, LRScheduler
from gradcli.engine.optim.optimizer import Optimizer
from gradcli.errors import OptionError
from gradcli.wording import quantity, verb


class SequentialLR(LRScheduler):
    """The first scheduler up to the first milestone, then the second, each counting from 0."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[Whole],
        last_epoch: Epoch = -1,
    ) -> None:
        _of_one_optimizer("SequentialLR", schedulers, optimizer)
        if any(isinstance(scheduler, ReduceLROnPlateau) for scheduler in schedulers):
            raise OptionError("SequentialLR: ReduceLROnPlateau needs figures; it cannot be a part")
        if len(milestones) != len(schedulers) - 1:
            raise OptionError(
                f"SequentialLR: {quantity(len(schedulers), 'scheduler')} "
                f"{verb(len(schedulers), 'needs', 'need')} "
                f"{quantity(len(schedulers) - 1, 'milestone')}, got {len(milestones)}"
            )
        self._schedulers = list(schedulers)
        self._milestones = list(milestones)
        for scheduler in self._schedulers:
            scheduler.last_epoch -= 1  # being made was a step
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        super().__init__(optimizer, last_epoch)

    def step(self) -> None:
        """Count one further, in the scheduler whose turn it is."""
        self.last_epoch += 1
        active, count = self._active(self.last_epoch)
        if count == 0:
            active.go_to(0)
        else:
            active.step()
        self._last_lr = active.get_last_lr()

    def go_to(self, epoch: int) -> None:
        """Set the count, and the rates to what belongs to it."""
        self.last_epoch = epoch
        active, count = self._active(epoch)
        active.go_to(count)
        self._last_lr = active.get_last_lr()

    def _active(self, epoch: int) -> tuple[LRScheduler, int]:
        turn = bisect_right(self._milestones, epoch)
        return self._schedulers[turn], epoch - self._milestones[turn - 1] if turn else epoch

    def rates(self, epoch: int) -> list[float]:
        """The rates of the scheduler whose turn it is."""
        active, count = self._active(epoch)
        return active.rates(count)

    def state_dict(self) -> dict[str, Any]:
        """Its own count, and the state of each scheduler."""
        parts = [scheduler.state_dict() for scheduler in self._schedulers]
        return {**super().state_dict(), "_schedulers": parts}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over its count and those of its schedulers."""
        _load_parts("SequentialLR", self._schedulers, state_dict)
        super().load_state_dict({"base_lrs": self.base_lrs, **state_dict})


@checked_constructor
class ChainedScheduler:
    """All schedulers, each going on from the rate that the one before has left."""

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if not schedulers:
            raise OptionError("ChainedScheduler: got no schedulers")
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        _of_one_optimizer("ChainedScheduler", schedulers, self.optimizer)
        self._schedulers = list(schedulers)
        self._last_lr = schedulers[-1].get_last_lr()

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return self._last_lr

    def step(self) -> None:
        """Count one further in each scheduler."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._schedulers[-1].get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """The state of each scheduler."""
        parts = [scheduler.state_dict() for scheduler in self._schedulers]
        return {"_schedulers": parts, "_last_lr": list(self._last_lr)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over the counts of its schedulers."""
        _load_parts("ChainedScheduler", self._schedulers, state_dict)
        self._last_lr = list(state_dict["_last_lr"])


def _of_one_optimizer(owner: str, schedulers: Sequence[LRScheduler], optimizer: Optimizer) -> None:
    if not schedulers:
        raise OptionError(f"{owner}: got no schedulers")
    for i, scheduler in enumerate(schedulers):
        if scheduler.optimizer is not optimizer:
            raise OptionError(f"{owner}: scheduler {i} is for another optimizer")


def _load_parts(
    owner: str, schedulers: Sequence[LRScheduler], state_dict: Mapping[str, Any]
) -> None:
    states = state_dict.get("_schedulers", [])
    if len(states) != len(schedulers):
        raise OptionError(
            f"load_state_dict: {owner} has {quantity(len(schedulers), 'scheduler')}, the state "
            f"{len(states)}"
        )
    for scheduler, state in zip(schedulers, states, strict=True):
        scheduler.load_state_dict(state)
