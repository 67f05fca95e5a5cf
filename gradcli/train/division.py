"""Divide a job's batches among several ranks, and check that there are enough parts.

The number of ranks chooses `train.micro_batch` where the config leaves it out, and nothing else. A
run keeps it in resolved.yaml: its first launch decides the bits, on however many ranks it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gradcli.engine import nn
from gradcli.errors import ConfigError, say_once
from gradcli.train.value_origins import ValueOrigin
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.train.job import Job, TrainSettings

FEW = 16  # samples: of fewer, batch norm's mean and variance are rough
_CURES = ("set train.micro_batch", "or use group norm, which looks at each sample alone")


def divide_batches(job: Job, ranks: int, note: Callable[[str], None]) -> Job:
    """A new run's job with a `micro_batch` for so many ranks; remarks go to `note`.

    Raises:
        ConfigError: E802, there are fewer parts than ranks, or batch norm would see one sample.
    """
    settings = with_parts(job.settings, job.dataset.splits["train"].size, ranks)
    if settings is not job.settings:
        portion = settings.micro_batch
        train = {**job.resolved.get("train", {}), "micro_batch": portion}
        origin = ValueOrigin(portion, "ranks", quantity(ranks, "rank"))
        job = replace(
            job,
            settings=settings,
            resolved={**job.resolved, "train": train},
            origins={**job.origins, "train.micro_batch": origin},
        )
        same = "gives the same bits" if job.settings.reduce == "exact" else "cuts it as they do"
        note(
            f"{quantity(ranks, 'rank')}, a part of the batch each: one rank {same} with "
            f"-s train.micro_batch={portion}"
        )
    check_parts(job, ranks, note)
    return job


def with_parts(settings: TrainSettings, samples: int, ranks: int) -> TrainSettings:
    """The settings with a `micro_batch` that gives each rank a part, if none is set."""
    if ranks == 1 or settings.micro_batch is not None:
        return settings
    return replace(settings, micro_batch=-(-min(settings.batch, samples) // ranks))


def check_parts(job: Job, ranks: int, note: Callable[[str], None]) -> None:
    """Check that the job's batches have enough parts for so many ranks.

    Raises:
        ConfigError: E802, there are fewer parts than ranks, or batch norm would see one sample.
    """
    if ranks == 1:
        return
    batch, whole = _batch(job), job.settings.micro_batch is None
    portion = job.settings.micro_batch or batch
    count = -(-batch // portion)
    if count < ranks:
        parts = "is one part" if count == 1 else f"has {quantity(count, 'part')} of {portion}"
        raise say_once(
            ConfigError(
                f"a batch of {quantity(batch, 'sample')} {parts}, and there are "
                f"{quantity(ranks, 'rank')}",
                code="E802",
                notes=(
                    f"start {quantity(count, 'rank')}: no more are of use",
                    _cure(portion, whole=whole),
                ),
            )
        )
    share = 1 - count / (-(-count // ranks) * ranks)
    if share:
        note(
            f"{quantity(count, 'part')} of a batch on {quantity(ranks, 'rank')}: {share:.0%} of "
            f"their time is idle; train.micro_batch decides how many parts there are"
        )
    if job.settings.reduce == "library":
        note("train.reduce: library: the last bits of the weights depend on the number of ranks")
    if any(isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d) for module in job.model.modules()):
        _check_batch_norm(job, portion, note)


def _cure(portion: int, *, whole: bool) -> str:
    """How to give a batch more parts, each of which has `portion` samples now."""
    if whole:
        return "or cut the batch: -s train.micro_batch=M"
    if portion == 1:
        return "or make train.batch larger"
    return "or make train.micro_batch smaller"


def _check_batch_norm(job: Job, portion: int, note: Callable[[str], None]) -> None:
    """Check the sizes of the parts for batch norm, which uses the statistics of a part."""
    if 1 in _sizes(job, portion):
        raise say_once(
            ConfigError(
                f"a part of 1 sample has no variance for batch norm: train.micro_batch is "
                f"{portion}, batches have {_text(job)}",
                code="E802",
                notes=_CURES,
            )
        )
    if portion < FEW:
        note(
            f"warning: batch norm sees parts of {quantity(portion, 'sample')}, and its mean and "
            f"variance are rough below {FEW}: {', '.join(_CURES)}"
        )


def _sizes(job: Job, portion: int) -> Iterator[int]:
    """The different sizes of the parts of an epoch's batches."""
    yield portion
    for batch in _batches(job):
        yield batch % portion or portion


def _batches(job: Job) -> list[int]:
    samples, batch = job.dataset.splits["train"].size, _batch(job)
    rest = 0 if job.settings.drop_last else samples % batch
    return [batch, rest] if rest else [batch]


def _text(job: Job) -> str:
    first, *rest = _batches(job)
    return quantity(first, "sample") + "".join(f", the last of an epoch {size}" for size in rest)


def _batch(job: Job) -> int:
    return min(job.settings.batch, job.dataset.splits["train"].size)
