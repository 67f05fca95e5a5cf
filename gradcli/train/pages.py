"""Samples in mapped files, asked for ahead of the steps; nothing where all lie in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.data import hashes
from gradcli.train.order import order_in

if TYPE_CHECKING:
    from gradcli.data import Split
    from gradcli.data.prepared.ahead_of_steps import AheadOfSteps
    from gradcli.train.job import Settings


class Pages:
    """Has the pages of samples read that the next steps need, while others compute."""

    def __init__(self, split: Split, settings: Settings, per_epoch: int) -> None:
        self._asking: AheadOfSteps | None = None
        self._asked_until = 0  # all samples of so many steps
        if hashes.lookouts:  # files are mapped, perhaps of this split
            from gradcli.data.prepared.ahead_of_steps import AheadOfSteps

            self._asking = AheadOfSteps.begin(split, engine.arange(1, dtype=engine.int64))
        if self._asking is not None:
            # Its own, which may be in another epoch than the steps are.
            self._order = order_in(settings, split, per_epoch)
            self._ahead = self._asking.steps(settings.batch)

    def at_a_time(self, steps: int) -> int:
        """How many of these steps are made in one go: half as many as are asked for ahead."""
        return steps if self._asking is None else min(steps, (self._ahead + 1) // 2)

    def ask(self, step: int, end: int) -> None:
        """Ask for the samples of some steps from this one on, but not behind the end."""
        if self._asking is None or self._asked_until > step + self._ahead // 2:
            return
        self._asked_until, until = max(self._asked_until, step), min(step + self._ahead, end)
        useful = self._asking.is_of_use()
        while self._asked_until < until:
            count = min(self._order.alike(self._asked_until), until - self._asked_until)
            if useful:
                self._asking.ask(self._order.samples(self._asked_until, count))
            self._asked_until += count

    def close(self) -> None:
        """Ask for nothing any more."""
        if self._asking is not None:
            self._asking.close()
