"""LRScheduler: sets the learning rate of each group from how often it was stepped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Annotated, Any

from gradcli.engine.constructor import (
    FieldConstructor,
    check_library_constructor,
    checked_constructor,
)
from gradcli.engine.kind import within
from gradcli.engine.optim.optimizer import Optimizer
from gradcli.errors import OptionError
from gradcli.wording import quantity

Epoch = Annotated[int, within("a whole number >= -1", ge=-1)]


@checked_constructor
class LRScheduler:
    """lr = rates(last_epoch), a function of the count and of each group's first rate.

    Subclasses give `factor`, by which the first rate is multiplied, or all `rates`. Where another
    has changed the rate meanwhile, such as a second scheduler, a `carries` one goes on from there.
    """

    carries = False

    def __init_subclass__(cls, **keywords: object) -> None:
        super().__init_subclass__(**keywords)
        check_library_constructor(cls)

    def __init__(self, optimizer: Optimizer, last_epoch: Epoch = -1) -> None:
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise OptionError(
                    f"{self._name}: last_epoch {last_epoch} goes on from an earlier run, but "
                    f"param_groups[{i}] has no initial_lr; load the optimizer's state first"
                )
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr = self._rates_now()
        self.step()

    @property
    def _name(self) -> str:
        return type(self).__name__

    def factor(self, epoch: int) -> float:
        """What the first rate is multiplied by after `epoch` steps."""
        raise NotImplementedError

    def rates(self, epoch: int) -> list[float]:
        """The learning rate of each group after `epoch` steps."""
        factor = self.factor(epoch)
        return [base * factor for base in self.base_lrs]

    def get_lr(self) -> list[float]:
        """The learning rate of each group at the present count."""
        return self.rates(self.last_epoch)

    def get_last_lr(self) -> list[float]:
        """The rates that were set last."""
        return self._last_lr

    def carried(self, base: float, rate: float, epoch: int) -> float:
        """The rate after another has made it `rate` and not what it was at epoch - 1."""
        del base
        before = self.factor(epoch - 1) if epoch else 1.0
        return rate * self.factor(epoch) / before if before else rate

    def step(self) -> None:
        """Count one further, and set the rates."""
        self.last_epoch += 1
        rates = self.rates(self.last_epoch)
        if self.carries:
            before = self.rates(self.last_epoch - 1) if self.last_epoch else self.base_lrs
            numbers = zip(self.base_lrs, self._rates_now(), before, rates, strict=True)
            rates = [
                rate if now == last else self.carried(base, now, self.last_epoch)
                for base, now, last, rate in numbers
            ]
        self._set(rates)

    def go_to(self, epoch: int) -> None:
        """Set the count, and the rates to what belongs to it."""
        self.last_epoch = epoch
        self._set(self.rates(epoch))

    def _rates_now(self) -> list[float]:
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def _set(self, rates: list[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = rates

    def state_dict(self) -> dict[str, Any]:
        """All that it was made with and its count, but not the optimizer and no functions."""
        return {name: copy(value) for name, value in vars(self).items() if _plain(value)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over the count and options of another; torch's own state is understood too.

        The rates themselves come with the optimizer's state, or with the next step.
        """
        missing = [name for name in ("last_epoch", "base_lrs") if name not in state_dict]
        if missing:
            raise OptionError(f"load_state_dict: {self._name} has no '{missing[0]}' in its state")
        if len(state_dict["base_lrs"]) != len(self.base_lrs):
            raise OptionError(
                f"load_state_dict: {self._name} is for {quantity(len(self.base_lrs), 'group')}, "
                f"the state for {len(state_dict['base_lrs'])}"
            )
        for name in LRScheduler.state_dict(self).keys() & state_dict.keys():
            setattr(self, name, copy(state_dict[name]))


class DeclaredScheduler(FieldConstructor, LRScheduler):
    """One of the library, whose fields are its options; `last_epoch` is the last of them."""

    carries = True

    optimizer: Optimizer

    def __post_init__(self) -> None:
        super().__init__(self.optimizer, self.last_epoch)


def _plain(value: object) -> bool:
    """Numbers, text, truth values, and lists of numbers."""
    if isinstance(value, list):
        return all(isinstance(item, int | float) for item in value)
    return value is None or isinstance(value, bool | int | float | str)


def each_group(name: str, value: Any, optimizer: Optimizer) -> list[float]:
    """One number for all groups, or a list with one for each."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, Sequence):
        return [float(value)] * groups
    if len(value) != groups:
        raise OptionError(f"{name} must be a number or {groups} of them, got {len(value)}")
    return [float(number) for number in value]
