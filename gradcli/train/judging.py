"""Judge an evaluation: the best so far, and how long nothing has improved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradcli.train.checkpoint import Best, CheckpointMeta
from gradcli.train.log import strict
from gradcli.train.metrics import better, direction_of

if TYPE_CHECKING:
    from gradcli.train.job import Job


def judge(job: Job, before: CheckpointMeta, figures: Mapping[str, float]) -> CheckpointMeta:
    """The run's metadata after an evaluation; passes the figures to the schedule too."""
    job.schedule.watch(figures)
    metrics = strict(dict(figures))
    nonfinite = metrics.pop("nonfinite", {})
    meta = replace(
        before,
        evaluated=before.step,
        metrics=metrics,
        nonfinite=nonfinite,
        schedule=job.schedule.state_dict(),
    )
    metric, stop = job.settings.judge, job.settings.early_stop
    if metric is not None and metric in figures:
        value = figures[metric]
        direction = direction_of(metric, job.metrics)
        if better(direction, value, meta.best.value if meta.best else None):
            meta = replace(meta, best=Best(metric, value, meta.step))
    if stop is not None and stop.metric in figures:
        value = figures[stop.metric]
        direction = direction_of(stop.metric, job.metrics)
        if better(direction, value, meta.watched, stop.min_delta):
            meta = replace(meta, watched=value, stale=0)
        else:
            meta = replace(meta, stale=meta.stale + 1)
    return meta


def best_as_json(job: Job, meta: CheckpointMeta) -> dict[str, Any] | None:
    """The best so far, for status.json; None if there is none."""
    best = meta.best
    if best is None:
        return None
    direction = direction_of(best.metric, job.metrics)
    return {"metric": best.metric, "value": best.value, "step": best.step, "better": direction}


def is_stale(job: Job, meta: CheckpointMeta) -> bool:
    """Whether early stopping ends the run here."""
    stop = job.settings.early_stop
    return stop is not None and meta.stale >= stop.patience


def latest_figures(meta: CheckpointMeta) -> dict[str, float]:
    """The figures of the last evaluation; NaN for one that an old checkpoint leaves open."""
    return {
        key: _odd(meta.nonfinite.get(key)) if value is None else value
        for key, value in meta.metrics.items()
    }


def _odd(word: object) -> float:
    return float(str(word)) if word in ("inf", "-inf") else math.nan
