"""Back to where a run was finite: its steps are made again, to find the one that ended that.

Where no step needs the norm of its gradients, gradients that are not finite show only in the next
loss, when they are in the weights. Steps are functions of their numbers, so that they can be made
again from the last checkpoint, or from the first weights, with a look at each norm.
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


def first_refused(
    job: Job,
    directory: Path,
    order: Order,
    until: int,
    note: Callable[[str], None],
    ends: Callable[[], bool],
    group: Group,
) -> NumericsError | None:
    """The error for the first step before `until` whose gradients are not finite.

    None where there is none, or nothing to begin with, or `ends` says that there is no time. The
    job is left as before that step. All ranks of `group` ask; rank 0 reads the checkpoints in
    `directory`.
    """
    looking = replace(job, settings=replace(job.settings, on_nonfinite="skip"))
    step = TrainingStep(looking, job.dataset.splits["train"], note, group)
    done = _back(job, directory, step.average, group)
    if done is None:
        return None
    note(f"the weights are not finite: making the steps behind {done} again, to see since when")
    while done < until - 1 and not ends():
        count = min(order.alike(done), until - 1 - done, STRETCH)
        indices = order.rows(done, count)
        made = step.run(done + 1, indices)
        done += made.done
        if made.error is not None:
            if made.refused is None:
                return None
            step.put_back()
            refused = NonfiniteStep(done + 1, indices[made.done], made.refused)
            return explain(job, step, refused).error
    return None


def _back(job: Job, directory: Path, average: Average | None, group: Group) -> int | None:
    """The newest step whose weights are finite, which the job has again; None if there is none."""
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
