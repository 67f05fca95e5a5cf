"""Measure the speed of a training and its waits for data, between two lines of the log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.train.step import TrainingStep


class Pace:
    """Counts samples and the time of their steps.

    Evaluations and saving lie outside `begin` and `end`. Steps that are recorded do not count, nor
    does the time to record and compile them: that happens once.
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
        """Count steps since `begin`, whose batches have one size."""
        before, self._learning = self._learning, self._step.captured.learning
        recorded = self._learning.steps - before.steps
        self._samples += batch * max(0, steps - recorded)
        self._seconds -= self._learning.seconds - before.seconds

    def end(self) -> None:
        """Stop counting time."""
        now = time.perf_counter()
        self._seconds += now - self._since
        self._since = now

    def take(self) -> dict[str, float]:
        """Figures for the log, since the latest call; none if all steps were recorded ones."""
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
