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
from gradcli.train.checkpoint import names, read
from gradcli.train.diagnose import RefusedStep, explain
from gradcli.train.state import nonfinite_weights, restore, tensors_of
from gradcli.train.step import Order, TrainingStep

if TYPE_CHECKING:
    from pathlib import Path

    from gradcli.train.job import Job

STRETCH = 50  # steps between two looks at signals


def first_refused(
    job: Job,
    checkpoints: Path,
    order: Order,
    until: int,
    note: Callable[[str], None],
    ends: Callable[[], bool],
) -> NumericsError | None:
    """The error for the first step before `until` whose gradients are not finite.

    None where there is none, or nothing to begin with, or `ends` says that there is no time. The
    job is left as before that step.
    """
    looking = replace(job, settings=replace(job.settings, on_nonfinite="skip"))
    step = TrainingStep(looking, job.dataset.splits["train"], note)
    done = _back(job, checkpoints, step.average)
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
            refused = RefusedStep(done + 1, indices[made.done], made.refused)
            return explain(job, step, refused).error
    return None


def _back(job: Job, checkpoints: Path, average: Average | None) -> int | None:
    """The newest step whose weights are finite, which the job has again; None if there is none."""
    for name in names(checkpoints):
        try:
            found = read(checkpoints / name)
            restore(found.tensors, job.model, job.optimizer, name, average)
        except CheckpointError:
            continue
        if not nonfinite_weights(job.model):
            if found.meta.schedule:
                job.schedule.load_state_dict(found.meta.schedule)
            return found.meta.step
    if job.fresh is None:
        return None
    first = job.fresh()
    if first.begin is not None:
        first.begin()
    ema = job.settings.ema
    start = None if ema is None else Average(first.model, ema)
    tensors = tensors_of(first.model, first.optimizer, start)
    restore(tensors, job.model, job.optimizer, "the first weights", average)
    return 0
