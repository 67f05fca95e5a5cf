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
from gradcli.train.generate import Sampling, continued

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


def _written(job: Job, step: int, tokens: int | None = None) -> str:
    sample = job.settings.sample
    assert sample is not None
    count = sample.tokens if tokens is None else tokens
    how = Sampling(count, sample.temperature, seed=job.settings.seed, step=step)
    return "".join(continued(job, sample.prompt, how, f"{KEY}.prompt"))


class TextSamples:
    """The texts of a training; rank 0 writes them, of the average where there is one."""

    def __init__(self, job: Job, average: Average | None, note: Callable[[str], None]) -> None:
        self._job = job
        self._average = average
        self._note = note
        self.due = job.settings.sample is not None

    def at(self, step: int) -> dict[str, str] | None:
        """Prompt and text of the weights behind a step; None where there is nothing to log."""
        sample = self._job.settings.sample
        if sample is None or distributed.group().rank:
            return None
        try:
            with self._average.in_place() if self._average else contextlib.nullcontext():
                return {"prompt": sample.prompt, "text": _written(self._job, step)}
        except GradcliError as error:  # weights that are not finite end the training elsewhere
            self._note(f"warning: no sample at step {step}: {error.message}")
            return None
