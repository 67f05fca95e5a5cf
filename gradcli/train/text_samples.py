"""`train: {sample: ...}`: text samples that a model writes during its training.

They depend only on seed, step and weights, and change neither the training's random numbers nor its
weights: a resumed run writes the same texts, and a run without them has the same bits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from gradcli.engine import distributed
from gradcli.errors import ConfigError, DataError, GradcliError, NumericsError
from gradcli.train.evaluate import Cancelled

if TYPE_CHECKING:
    from gradcli.train.average import Average
    from gradcli.train.job import Job

KEY = "train.sample"


def try_sample(job: Job) -> None:
    """Write one token before the first step, so that an unusable prompt fails early.

    If weights give numbers that are not finite, the training reports it.
    """
    if job.settings.sample is None:
        return
    try:
        _generate(job, 0, tokens=1)
    except NumericsError:
        return
    except (ConfigError, DataError):
        raise
    except GradcliError as error:
        raise ConfigError(
            f"{KEY}: this model cannot write on, one token at a time: {error.message}", code="E109"
        ) from error


def _generate(
    job: Job, step: int, must_end: Callable[[], bool] = lambda: False, tokens: int | None = None
) -> str:
    from gradcli.train.generate import Sampling, continued  # most trainings write no text

    sample = job.settings.sample
    assert sample is not None
    count = sample.tokens if tokens is None else tokens
    how = Sampling(count, sample.temperature, seed=job.settings.seed, step=step)
    pieces = []
    for piece in continued(job, sample.prompt, how, f"{KEY}.prompt"):
        if must_end():
            raise Cancelled
        pieces.append(piece)
    return "".join(pieces)


class TextSamples:
    """The text samples of a training; rank 0 writes them, with the average if there is one."""

    def __init__(self, job: Job, average: Average | None, note: Callable[[str], None]) -> None:
        self._job = job
        self._average = average
        self._note = note
        self.due = job.settings.sample is not None

    def at(self, step: int, must_end: Callable[[], bool]) -> dict[str, str] | None:
        """Prompt and text of the weights after a step; None if there is nothing to log.

        Raises:
            Cancelled: `must_end()` is true, and the text is dropped; with several ranks, which
                would have to check together, the text is written to its end.
        """
        group, sample = distributed.group(), self._job.settings.sample
        if sample is None or group.rank:
            return None
        check = must_end if group.size == 1 else lambda: False
        try:
            with self._average.in_place() if self._average else contextlib.nullcontext():
                return {"prompt": sample.prompt, "text": _generate(self._job, step, check)}
        except GradcliError as error:  # weights that are not finite end the training elsewhere
            self._note(f"warning: no sample at step {step}: {error.message}")
            return None
