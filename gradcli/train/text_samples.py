"""`train: {sample: ...}`: text that a model writes on as its training goes on.

What is drawn depends on seed and step alone, and the training's own random numbers and weights stay
as they are: a resumed run writes the same texts, and one without them has the same bits.
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
    """Write one token before the first step, so that a prompt nobody can go on from ends it there.

    Weights that give no finite numbers are for the training to name.
    """
    if job.settings.sample is None:
        return
    try:
        _written(job, 0, tokens=1)
    except NumericsError:
        return
    except (ConfigError, DataError):
        raise
    except GradcliError as error:
        raise ConfigError(
            f"{KEY}: this model cannot write on, one token at a time: {error.message}", code="E109"
        ) from error


def _written(
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
    """The texts of a training; rank 0 writes them, of the average where there is one."""

    def __init__(self, job: Job, average: Average | None, note: Callable[[str], None]) -> None:
        self._job = job
        self._average = average
        self._note = note
        self.due = job.settings.sample is not None

    def at(self, step: int, must_end: Callable[[], bool]) -> dict[str, str] | None:
        """Prompt and text of the weights behind a step; None where there is nothing to log.

        Raises:
            Cancelled: it must end, and the text is dropped; where ranks would have to look up
                together for that, it is written to its end.
        """
        group, sample = distributed.group(), self._job.settings.sample
        if sample is None or group.rank:
            return None
        check = must_end if group.size == 1 else lambda: False
        try:
            with self._average.in_place() if self._average else contextlib.nullcontext():
                return {"prompt": sample.prompt, "text": _written(self._job, step, check)}
        except GradcliError as error:  # weights that are not finite end the training elsewhere
            self._note(f"warning: no sample at step {step}: {error.message}")
            return None
