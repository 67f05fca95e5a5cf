"""What checkpoints of a job say beside its tensors: at step 0, and going on from one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gradcli.data.facts import data_facts
from gradcli.data.hashes import so_far
from gradcli.train.checkpoint import Meta
from gradcli.train.compare import config_sha256, places_of
from gradcli.train.origin import origin_of

if TYPE_CHECKING:
    from gradcli.train.job import Job


def meta_of(job: Job) -> Meta:
    """At step 0."""
    return Meta(
        step=0,
        epoch=0,
        seed=job.settings.seed,
        optimizer=job.optimizer_name,
        config_sha256=config_sha256(job.resolved, places_of(job)),
        config=job.resolved,
        data=so_far(job.dataset.sha256),
        facts=data_facts(job.dataset.facts, job.dataset.state),
        origin=origin_of(job),
    )


def continued(before: Meta, mine: Meta) -> Meta:
    """Where the run stood, of the job as it is now.

    What a schedule has seen stays, unless it is another one.
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


def _watched(meta: Meta) -> tuple[object, object]:
    """Which schedule it is, and the figure that it watches: its state is of these."""
    schedule = meta.config.get("schedule", {})
    return schedule.get("name"), schedule.get("metric")
