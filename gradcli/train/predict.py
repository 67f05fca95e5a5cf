"""A trained model applied to new samples: labels with their probabilities, or values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.data.dataset import readable_in
from gradcli.data.files import as_text, shown
from gradcli.data.hashes import look_out
from gradcli.errors import ConfigError, NumericsError
from gradcli.train import precision
from gradcli.train.spelling import is_bpe
from gradcli.wording import listed, quantity, verb

if TYPE_CHECKING:
    from gradcli.data.dataset import LaterInputs
    from gradcli.engine import Tensor
    from gradcli.engine.program.capture import Captured
    from gradcli.train.job import Job


class Predictor:
    """A trained model as a function of samples; threads may share it, one batch runs at a time."""

    def __init__(self, job: Job, capture: Callable[..., Captured] = engine.capture) -> None:
        self._job = job
        self._lock = Lock()
        job.model.eval()
        self._outputs = capture(
            _outputs_of(job), on_refusal=lambda _: None, eager=not job.settings.capture
        )

    def alone(self) -> AbstractContextManager[Any]:
        """Inside the block no other thread runs the model through this."""
        return self._lock

    def files(
        self, paths: Iterable[Path], top: int, note: Callable[[str], None]
    ) -> Iterator[dict[str, Any]]:
        """One record a sample: file, index, name, and what `answers` says of it.

        A folder stands for the files in it. `note` is told what the user should know of them.
        """
        for file in self._expanded(paths, note):
            unseen = self._job.dataset.read(file)
            for text in unseen.notes:
                note(text)
            names = zip(unseen.indices, unseen.names, strict=True)
            answers = self.answers(unseen.inputs, top, str(file), unseen.indices)
            for (index, name), answer in zip(names, answers, strict=True):
                place = {"file": as_text(file), "index": index, "name": as_text(name)}
                yield place | answer

    def answers(
        self, inputs: Tensor | LaterInputs, top: int, source: str, indices: Sequence[int]
    ) -> Iterator[dict[str, Any]]:
        """What the model says of each sample; `source` and `indices` name them in errors.

        Of classes that is `label` and `probability` of the likeliest, `probabilities` of all by
        label, and `top`, the likeliest ones in order; of a regression `values`, by the name of the
        target.
        """
        job, size = self._job, self._job.settings.batch
        for begin in range(0, inputs.shape[0], size):
            with self._lock:
                rows = self._outputs(inputs[begin : begin + size]).tolist()
                look_out(closely=True)
            for index, values in zip(indices[begin : begin + size], rows, strict=True):
                _check(values, source, index)
                if job.dataset.facts.classes is None:
                    names = value_names(job, len(values))
                    yield {"values": dict(zip(names, values, strict=True))}
                else:
                    yield _ranked(values, labels_of(job), top)

    def reads(self, file: Path, paths: Iterable[Path]) -> bool:
        """Whether a file is one of these, or one that is read in a folder among them."""
        files = self._expanded(paths, lambda note: None)
        return file.exists() and any(one.exists() and one.samefile(file) for one in files)

    def _expanded(self, paths: Iterable[Path], note: Callable[[str], None]) -> Iterator[Path]:
        for path in paths:
            if not path.is_dir():
                yield path
                continue
            fit, others = readable_in(path, self._job.dataset.source)
            if others:
                names = listed((shown(one.name) for one in others), 3)
                left_out = f"{quantity(len(others), 'file')} {verb(len(others))} left out"
                note(f"{shown(path)}: {left_out}: {names}")
            yield from fit


def _outputs_of(job: Job) -> Callable[[Tensor], Tensor]:
    """For the inputs of some samples: a row each, of probabilities where there are classes.

    An image that stands for values, as an autoencoder's does, is the row of its pixels.
    """

    @engine.no_grad()
    def outputs(inputs: Tensor) -> Tensor:
        with precision.forward(job.settings):
            found = job.answers(job.model(inputs)).float()
        if job.dataset.facts.input_kind == "index" and found.ndim > 2:
            found = found[:, -1]  # what follows the sample's last token
        if job.dataset.facts.classes is None and found.ndim > 2:
            found = found.flatten(1)
        if found.ndim != 2:
            raise ConfigError(
                f"predict needs one row of outputs a sample, the model gives {found.shape}"
            )
        return found if job.dataset.facts.classes is None else engine.softmax(found, dim=-1)

    return outputs


def labels_of(job: Job) -> Sequence[str]:
    """The names of the classes, their numbers where the data has none."""
    facts, source = job.dataset.facts, job.dataset.source
    if is_bpe(source):
        return source.bpe.tokenizer.names
    return facts.labels or [str(number) for number in range(facts.classes or 0)]


def value_names(job: Job, count: int) -> Sequence[str]:
    """The names of the numbers in a target, which count from 0 where the data has no names."""
    names = job.dataset.facts.values
    return names if len(names) == count else [str(number) for number in range(count)]


def _check(values: Sequence[float], source: str, index: int) -> None:
    if not all(math.isfinite(value) for value in values):
        raise NumericsError(f"the model's output for {source}, sample {index}, is not finite")


def _ranked(values: Sequence[float], labels: Sequence[str], top: int) -> dict[str, Any]:
    """The `top` most probable classes, the lower number first among equals."""
    order = sorted(range(len(values)), key=lambda number: (-values[number], number))[:top]
    ranked = [{"label": labels[number], "probability": values[number]} for number in order]
    return {**ranked[0], "probabilities": dict(zip(labels, values, strict=True)), "top": ranked}
