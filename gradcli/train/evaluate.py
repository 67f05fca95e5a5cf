"""Evaluation: every sample once, in order; sums and counts carried, one division at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.train.metrics import METRICS

if TYPE_CHECKING:
    from gradcli.data import Split
    from gradcli.engine import Tensor
    from gradcli.train.job import Job


class Cancelled(Exception):  # noqa: N818 -- a way out, not an error
    """A signal asked for an end; the evaluation is dropped, no figure of it is used."""


def portions(size: int, batch: int) -> Iterator[Tensor]:
    """Indices 0..size-1 in runs of `batch`."""
    for begin in range(0, size, batch):
        yield engine.arange(begin, min(begin + batch, size), dtype=engine.int64)


def evaluate(
    job: Job,
    split: Split,
    name: str,
    *,
    asked: Callable[[], bool] = lambda: False,
    limit: int | None = None,
) -> dict[str, float]:
    """`{name.loss: ..., name.accuracy: ...}` over the split, or its first `limit` samples."""
    sums = dict.fromkeys(job.metrics, 0.0)
    counts = dict.fromkeys(job.metrics, 0)
    loss, samples = 0.0, 0
    job.model.eval()
    try:
        with engine.no_grad():
            for indices in portions(min(split.size, limit or split.size), job.settings.batch):
                if asked():
                    raise Cancelled
                inputs, targets = split.batch(indices)
                outputs = job.model(inputs)
                loss += float(job.loss(outputs, targets).item()) * indices.shape[0]
                samples += indices.shape[0]
                for metric in job.metrics:
                    sums[metric] += float(METRICS[metric].total(outputs, targets).item())
                    counts[metric] += targets.numel()
    finally:
        job.model.train()
    figures = {f"{name}.loss": loss / samples}
    for metric in job.metrics:
        mean = sums[metric] / counts[metric]
        figures[f"{name}.{metric}"] = METRICS[metric].finish(mean)
    return figures


def metric_names(job: Job) -> list[str]:
    """Every figure that this job's evaluations can give."""
    splits = [name for name in ("val", "test") if name in job.dataset.splits]
    return [f"{split}.{metric}" for split in splits for metric in ("loss", *job.metrics)]
