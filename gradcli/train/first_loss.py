"""Compare the first loss of a training with that of a guess."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.train.job import Job

TIMES = 3.0  # a first loss this much above that of a guess is no accident


def guess_loss(job: Job) -> float | None:
    """The cross-entropy of equal probabilities for all classes; None for other losses."""
    facts, loss = job.dataset.facts, job.resolved.get("loss")
    name = loss.get("name") if isinstance(loss, dict) else loss
    if name != "cross_entropy" or facts is None:
        return None
    classes = facts.classes or facts.vocab  # the next token of a text
    return math.log(classes) if classes and classes > 1 else None


def note(job: Job, loss: float) -> str:
    """A warning if the loss of a new run's first step is far above a guess; else empty."""
    guess = guess_loss(job)
    if guess is None or job.begin is not None or loss < TIMES * guess:
        return ""
    return (
        f"warning: the first loss is {loss:.4g}, and a guess has {guess:.4g} (ln "
        f"{round(math.exp(guess)):,}); probably the inputs are not normalised, the first weights "
        "are too large (`init`), or a layer before the end scales its outputs"
    )
