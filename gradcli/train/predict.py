"""Apply a trained model to new samples: labels with their probabilities, or values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.data.dataset import readable_in
from gradcli.data.files import as_text, path_text
from gradcli.data.hashes import look_out
from gradcli.errors import ConfigError, NumericsError
from gradcli.train import precision
from gradcli.train.spelling import is_bpe
from gradcli.wording import join_words, quantity, verb

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
            _outputs_of(job), on_fallback=lambda _: None, eager=not job.settings.capture
        )

    def alone(self) -> AbstractContextManager[Any]:
        """Within the block no other thread can run the model."""
        return self._lock

    def files(
        self, paths: Iterable[Path], top: int, note: Callable[[str], None]
    ) -> Iterator[dict[str, Any]]:
        """A record for each sample: file, index, name, and its entries from `predictions`.

        A folder stands for the files in it. Remarks for the user go to `note`.
        """
        for file in self._expand(paths, note):
            unseen = self._job.dataset.read(file)
            for text in unseen.notes:
                note(text)
            names = zip(unseen.indices, unseen.names, strict=True)
            predictions = self.predictions(unseen.inputs, top, str(file), unseen.indices)
            for (index, name), answer in zip(names, predictions, strict=True):
                sample = {"file": as_text(file), "index": index, "name": as_text(name)}
                yield sample | answer

    def predictions(
        self, inputs: Tensor | LaterInputs, top: int, source: str, indices: Sequence[int]
    ) -> Iterator[dict[str, Any]]:
        """The model's answer for each sample; `source` and `indices` name it in errors.

        For classes it has `label` and `probability` of the likeliest, `probabilities` of all by
        label, and `top`, the likeliest in order; for a regression `values`, by target name.
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
                    yield _rank(values, labels_of(job), top)

    def reads(self, file: Path, paths: Iterable[Path]) -> bool:
        """Whether a file is among the paths, or among the files of a folder there."""
        files = self._expand(paths, lambda note: None)
        return file.exists() and any(
            candidate.exists() and candidate.samefile(file) for candidate in files
        )

    def _expand(self, paths: Iterable[Path], note: Callable[[str], None]) -> Iterator[Path]:
        for path in paths:
            if not path.is_dir():
                yield path
                continue
            fit, unread = readable_in(path, self._job.dataset.source)
            if unread:
                names = join_words((path_text(file.name) for file in unread), 3)
                left_out = f"{quantity(len(unread), 'file')} {verb(len(unread))} left out"
                note(f"{path_text(path)}: {left_out}: {names}")
            yield from fit


def _outputs_of(job: Job) -> Callable[[Tensor], Tensor]:
    """A function that turns inputs into a row for each sample: probabilities, or values.

    The row of an output image, such as an autoencoder's, is its pixels.
    """

    @engine.no_grad()
    def outputs(inputs: Tensor) -> Tensor:
        with precision.forward(job.settings):
            predictions = job.postprocess(job.model(inputs)).float()
        if job.dataset.facts.input_kind == "index" and predictions.ndim > 2:
            predictions = predictions[:, -1]  # what follows the sample's last token
        if job.dataset.facts.classes is None and predictions.ndim > 2:
            predictions = predictions.flatten(1)
        if predictions.ndim != 2:
            raise ConfigError(
                f"predict needs one row of outputs a sample, the model gives {predictions.shape}"
            )
        return (
            predictions
            if job.dataset.facts.classes is None
            else engine.softmax(predictions, dim=-1)
        )

    return outputs


def labels_of(job: Job) -> Sequence[str]:
    """The names of the classes, or their numbers if they have no names."""
    facts, source = job.dataset.facts, job.dataset.source
    if is_bpe(source):
        return source.bpe.tokenizer.names
    return facts.labels or [str(number) for number in range(facts.classes or 0)]


def value_names(job: Job, count: int) -> Sequence[str]:
    """The names of the values in a target, or their numbers from 0 if they have no names."""
    names = job.dataset.facts.values
    return names if len(names) == count else [str(number) for number in range(count)]


def _check(values: Sequence[float], source: str, index: int) -> None:
    if not all(math.isfinite(value) for value in values):
        raise NumericsError(f"the model's output for {source}, sample {index}, is not finite")


def _rank(values: Sequence[float], labels: Sequence[str], top: int) -> dict[str, Any]:
    """The `top` most probable classes, the lower number first among equals."""
    order = sorted(range(len(values)), key=lambda number: (-values[number], number))[:top]
    ranked = [{"label": labels[number], "probability": values[number]} for number in order]
    return {**ranked[0], "probabilities": dict(zip(labels, values, strict=True)), "top": ranked}
