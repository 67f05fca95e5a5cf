"""The metadata of a job's checkpoints: at step 0, and after a resume."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gradcli.data.facts import data_facts
from gradcli.data.hashes import so_far
from gradcli.train.checkpoint import CheckpointMeta
from gradcli.train.compare import config_sha256, path_keys_of
from gradcli.train.origin import origin_of

if TYPE_CHECKING:
    from gradcli.train.job import Job


def meta_of(job: Job) -> CheckpointMeta:
    """The metadata at step 0."""
    return CheckpointMeta(
        step=0,
        epoch=0,
        seed=job.settings.seed,
        optimizer=job.optimizer_name,
        config_sha256=config_sha256(job.resolved, path_keys_of(job)),
        config=job.resolved,
        data=so_far(job.dataset.sha256),
        facts=data_facts(job.dataset.facts, job.dataset.state),
        origin=origin_of(job),
    )


def continued(before: CheckpointMeta, mine: CheckpointMeta) -> CheckpointMeta:
    """The metadata of a checkpoint, with the job as it is now.

    The schedule keeps its state, unless it is another schedule.
    """
    return replace(
        before,
        format=mine.format,
        config=mine.config,
        schedule=before.schedule if _watched(before) == _watched(mine) else {},
        config_sha256=mine.config_sha256,
        data=mine.data,
        facts=mine.facts,
        origin=mine.origin,
        state=mine.state,
    )


def _watched(meta: CheckpointMeta) -> tuple[object, object]:
    """The schedule's name and the figure that it watches, on which its state depends."""
    schedule = meta.config.get("schedule", {})
    return schedule.get("name"), schedule.get("metric")
