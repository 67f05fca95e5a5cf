"""Find the step that made a run's weights non-finite, by repeating steps from finite weights.

If steps do not need the norm of their gradients, gradients that are not finite show only in the
next loss, when they are in the weights. A step is a function of its number, so steps can be
repeated from the last checkpoint, or from the first weights, with a check of each norm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from gradcli.errors import CheckpointError, NumericsError
from gradcli.train.average import Average
from gradcli.train.diagnose import NonfiniteStep, explain
from gradcli.train.order import Order
from gradcli.train.ranks import checkpoints, of_first, take_from_first
from gradcli.train.state import all_tensors, nonfinite_weights, restore, tensors_of
from gradcli.train.step import TrainingStep

if TYPE_CHECKING:
    from pathlib import Path

    from gradcli.engine.distributed import Group
    from gradcli.train.job import Job

STRETCH = 50  # steps between two looks at signals


def first_nonfinite(
    job: Job,
    directory: Path,
    order: Order,
    until: int,
    note: Callable[[str], None],
    ends: Callable[[], bool],
    group: Group,
) -> NumericsError | None:
    """The error for the first step before `until` whose gradients are not finite.

    None if there is no such step, no finite weights to begin with, or `ends()` stops the search.
    The job is left as before that step. All ranks of `group` call this; rank 0 reads the
    checkpoints in `directory`.
    """
    looking = replace(job, settings=replace(job.settings, on_nonfinite="skip"))
    step = TrainingStep(looking, job.dataset.splits["train"], note, group)
    number = _back(job, directory, step.average, group)
    if number is None:
        return None
    note(f"the weights are not finite: making the steps behind {number} again, to see since when")
    while number < until - 1 and not ends():
        count = min(order.alike(number), until - 1 - number, STRETCH)
        indices = order.rows(number, count)
        progress = step.run(number + 1, indices)
        number += progress.count
        if progress.error is not None:
            if progress.nonfinite is None:
                return None
            step.put_back()
            failure = NonfiniteStep(number + 1, indices[progress.count], progress.nonfinite)
            return explain(job, step, failure).error
    return None


def _back(job: Job, directory: Path, average: Average | None, group: Group) -> int | None:
    """Restore the newest finite weights; returns their step, or None if there are none."""
    for name, saved in checkpoints(group, directory):
        try:
            restore(saved.tensors, job.model, job.optimizer, name, average)
        except CheckpointError:
            continue
        if not nonfinite_weights(job.model):
            if saved.meta.schedule:
                job.schedule.load_state_dict(saved.meta.schedule)
            return saved.meta.step
    if job.fresh is None:
        return None
    first = job.fresh()
    if first.begin is not None:
        of_first(group, first.begin)
    take_from_first(group, all_tensors(first.model, first.optimizer).values())
    ema = job.settings.ema
    start = None if ema is None else Average(first.model, ema)
    tensors = tensors_of(first.model, first.optimizer, start)
    restore(tensors, job.model, job.optimizer, "the first weights", average)
    return 0
