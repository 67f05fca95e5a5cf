"""How fast a training goes between two lines of its log, and how long it waited for data."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.train.step import TrainingStep


class Pace:
    """Counts samples, and the time in which they were learnt from.

    Evaluations and saving lie outside `begin` and `end`. Steps that are recorded, and the time that
    this and the making of their programs takes, are left out: that happens once.
    """

    def __init__(self, step: TrainingStep) -> None:
        self._step = step
        self._learning = step.captured.learning
        self._since = 0.0
        self._seconds = 0.0
        self._samples = 0
        self._waited = step.waited

    def begin(self) -> None:
        """Steps begin now."""
        self._since = time.perf_counter()

    def count(self, steps: int, batch: int) -> None:
        """So many steps of batches of one size were made since."""
        before, self._learning = self._learning, self._step.captured.learning
        recorded = self._learning.steps - before.steps
        self._samples += batch * max(0, steps - recorded)
        self._seconds -= self._learning.seconds - before.seconds

    def end(self) -> None:
        """What comes now is not counted."""
        now = time.perf_counter()
        self._seconds += now - self._since
        self._since = now

    def take(self) -> dict[str, float]:
        """For the log: of the time since the latest call; nothing where all was learning."""
        self.end()
        samples, seconds = self._samples, self._seconds
        self._samples, self._seconds = 0, 0.0
        before, self._waited = self._waited, self._step.waited
        if not samples or seconds <= 0:
            return {}
        share = min(1.0, max(0.0, self._waited - before) / seconds)
        return {
            "samples_per_second": float(f"{samples / seconds:.6g}"),
            "wait_data": float(f"{share:.4g}"),
        }
