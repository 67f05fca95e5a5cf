"""The training step of a config: run as `train` runs it, eagerly and captured, and taken apart."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gradcli.bench import calls, layers
from gradcli.bench.layers import Scope, Scopes
from gradcli.train.order import Order
from gradcli.train.step import OneStep, TrainingStep

if TYPE_CHECKING:
    from gradcli.bench.calls import Parts
    from gradcli.config.planned import PlannedLayer
    from gradcli.data import Split
    from gradcli.engine import Tensor
    from gradcli.engine.program.on_device import DeviceProgram
    from gradcli.engine.program.replay import Program
    from gradcli.train.job import Job

BATCH, UPDATE = Scope("batch"), Scope("optimizer")


def batch_size(job: Job) -> int:
    """Samples of a step; a small data set may have fewer than the config asks for."""
    return min(job.settings.batch, job.dataset.splits["train"].size)


def _order(job: Job) -> Order:
    """The whole batches of each epoch."""
    samples, batch = job.dataset.splits["train"].size, batch_size(job)
    return Order(job.settings.seed, batch, samples, samples // batch)


class TrainingSteps:
    """The steps of a job one after another, captured or not."""

    def __init__(self, job: Job, *, captured: bool) -> None:
        self.fallback_reason = ""
        self._position = 0
        self._order = _order(job)
        variant = replace(job, settings=replace(job.settings, capture=captured))
        self._step = TrainingStep(variant, job.dataset.splits["train"], self._note)
        self._seconds = self._waited = 0.0

    def forget_times(self) -> None:
        """Start the times anew, once the programs are built."""
        self._seconds = self._waited = 0.0

    @property
    def wait_data(self) -> float:
        """The share of time in which the steps waited for their samples."""
        return min(1.0, self._waited / self._seconds) if self._seconds else 0.0

    def run(self, count: int) -> float:
        """Run `count` more steps, captured ones without Python in between; return the last loss."""
        loss = 0.0
        until = self._position + count
        while self._position < until:
            stretch = min(until - self._position, self._order.alike(self._position))
            rows = self._order.rows(self._position, stretch)
            began, waited = time.perf_counter(), self._step.waited
            progress = self._step.run(self._position + 1, rows)
            self._seconds += time.perf_counter() - began
            self._waited += self._step.waited - waited
            if progress.error is not None:
                raise progress.error
            self._position += stretch
            loss = progress.losses[-1]
        return loss

    @property
    def programs(self) -> list[Program | DeviceProgram]:
        """The programs of captured steps."""
        return self._step.captured.programs

    def _note(self, reason: str) -> None:
        self.fallback_reason = reason


class MarkedStep(OneStep):
    """A step that reports the scopes of its batch and of its update of the weights."""

    def __init__(self, job: Job, split: Split, scopes: Scopes) -> None:
        super().__init__(job, split)
        self._scopes = scopes

    def batch(self, indices: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """The samples, in the turn of the batch."""
        with self._scopes.of(BATCH):
            return super().batch(indices, state)

    def update(self, decay: Tensor | None = None) -> None:
        """The change, in the turn of the optimizer."""
        with self._scopes.of(UPDATE):
            super().update(decay)


def parts(job: Job, plan: Sequence[PlannedLayer], times: int) -> Parts:
    """The calls of the first step, each with its time and the turn it belongs to."""
    scopes = Scopes()
    indices = _order(job).rows(0, 1)[0]
    with layers.watched(job, plan, scopes) as watched:
        step = MarkedStep(watched, job.dataset.splits["train"], scopes)
        inputs = [row[0] for row in step.inputs([1])]
        return calls.measure(lambda: step(indices, *inputs), scopes, times)
