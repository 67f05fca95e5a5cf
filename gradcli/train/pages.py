"""Read samples of mapped files ahead of the steps; does nothing for samples in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.data import hashes
from gradcli.train.order import order_in

if TYPE_CHECKING:
    from gradcli.data import Split
    from gradcli.data.prepared.ahead_of_steps import AheadOfSteps
    from gradcli.train.job import TrainSettings


class Pages:
    """Has pages read for the next steps while the current ones compute."""

    def __init__(self, split: Split, settings: TrainSettings, per_epoch: int) -> None:
        self._asking: AheadOfSteps | None = None
        self._next = 0  # the first step whose samples were not requested
        if hashes.lookouts:  # files are mapped, perhaps of this split
            from gradcli.data.prepared.ahead_of_steps import AheadOfSteps

            self._asking = AheadOfSteps.begin(split, engine.arange(1, dtype=engine.int64))
        if self._asking is not None:
            # An order of its own, which may be in another epoch than the steps.
            self._order = order_in(settings, split, per_epoch)
            self._ahead = self._asking.steps(settings.batch)

    def at_a_time(self, steps: int) -> int:
        """How many of these steps to run in one stretch: half as many as are requested ahead."""
        return steps if self._asking is None else min(steps, (self._ahead + 1) // 2)

    def ask(self, step: int, end: int) -> None:
        """Request the samples of the steps from this one on, up to the end."""
        if self._asking is None or self._next > step + self._ahead // 2:
            return
        self._next, until = max(self._next, step), min(step + self._ahead, end)
        useful = self._asking.is_of_use()
        while self._next < until:
            count = min(self._order.alike(self._next), until - self._next)
            if useful:
                self._asking.ask(self._order.samples(self._next, count))
            self._next += count

    def close(self) -> None:
        """Stop requesting."""
        if self._asking is not None:
            self._asking.close()
