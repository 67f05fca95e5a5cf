"""Evaluation: every sample once, in order; sums and counts carried, one division at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.train import precision
from gradcli.train.metrics import METRICS

if TYPE_CHECKING:
    from gradcli.data import Split
    from gradcli.engine import Tensor
    from gradcli.train.job import Job

ROWS = 16  # batches between two looks at signals


class Cancelled(Exception):  # noqa: N818 -- a way out, not an error
    """A signal asked for an end; the evaluation is dropped, no figure of it is used."""


class Evaluation:
    """The figures of a split, captured: its programs serve every evaluation of a training."""

    def __init__(self, job: Job, split: Split, name: str) -> None:
        self._job = job
        self._size = split.size
        self._name = name
        # A batch that cannot be captured is no news here: the training step says so.
        self._batch = engine.capture(
            _sums_of(job, split), on_refusal=lambda _: None, eager=not job.settings.capture
        )

    def run(
        self, asked: Callable[[], bool] = lambda: False, limit: int | None = None
    ) -> dict[str, float]:
        """`{name.loss: ..., name.accuracy: ...}` over the split, or its first `limit` samples."""
        size = min(self._size, limit or self._size)
        job = self._job
        loss, totals = 0.0, dict.fromkeys(job.metrics, 0.0)
        counted = 0
        job.model.eval()
        try:
            for rows in stretches(size, job.settings.batch):
                if asked():
                    raise Cancelled
                sums = self._batch.scan(rows)
                for value in sums["loss"].tolist():
                    loss += value * rows.shape[1]
                for metric in job.metrics:
                    totals[metric] += sum(sums[metric].tolist())
                counted += sums["targets"] * rows.shape[0]
        finally:
            job.model.train()
        figures = {f"{self._name}.loss": loss / size}
        for metric in job.metrics:
            figures[f"{self._name}.{metric}"] = METRICS[metric].finish(totals[metric] / counted)
        return figures


def _sums_of(job: Job, split: Split) -> Callable[[Tensor], dict[str, Any]]:
    """For the indices of a batch: its mean loss, the total of each metric, how many targets."""

    @engine.no_grad()
    def sums(indices: Tensor) -> dict[str, Any]:
        inputs, targets = split.batch(indices)
        with precision.forward(job.settings):
            outputs = job.model(inputs)
            answers = job.answers(outputs)
            totals = {metric: METRICS[metric].total(answers, targets) for metric in job.metrics}
            loss = job.loss(outputs, targets)
        return {"loss": loss, "targets": targets.numel(), **totals}

    return sums


def stretches(size: int, batch: int) -> Iterator[Tensor]:
    """Indices 0..size-1 as rows of `batch`, a few rows at a time; a smaller last row by itself."""
    whole = size - size % batch
    for begin in range(0, whole, batch * ROWS):
        end = min(begin + batch * ROWS, whole)
        yield engine.arange(begin, end, dtype=engine.int64).reshape(-1, batch)
    if whole < size:
        yield engine.arange(whole, size, dtype=engine.int64).reshape(1, -1)


def metric_names(job: Job) -> list[str]:
    """Every figure that this job's evaluations can give."""
    splits = [name for name in ("val", "test") if name in job.dataset.splits]
    return [f"{split}.{metric}" for split in splits for metric in ("loss", *job.metrics)]
