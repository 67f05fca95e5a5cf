"""A trained model applied to new files: labels with their probabilities, or values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.errors import ConfigError, NumericsError

if TYPE_CHECKING:
    from gradcli.train.job import Job


def predict(
    job: Job,
    state: Mapping[str, Any],
    file: Path,
    top: int,
    note: Callable[[str], None],
) -> Iterator[dict[str, Any]]:
    """One row a sample: file, index, name, and `top` classes or the values.

    `state` is what the dataset had fitted when the checkpoint was written; `note` is told what
    the user should know of the file.
    """
    unseen = job.dataset.source.read(file, state)
    for text in unseen.notes:
        note(text)
    classes = job.dataset.facts.classes
    size = job.settings.batch
    job.model.eval()
    for begin in range(0, len(unseen.names), size):
        end = min(begin + size, len(unseen.names))
        with engine.no_grad():
            outputs = job.model(unseen.inputs[begin:end])
            if job.dataset.facts.input_kind == "index":
                outputs = outputs[:, -1]  # what follows the sample's last token
            if outputs.ndim != 2:
                raise ConfigError(
                    f"predict needs one row of outputs a sample, the model gives {outputs.shape}"
                )
            if classes is not None:
                outputs = engine.softmax(outputs, dim=-1)
        for at, values in enumerate(outputs.tolist(), begin):
            row = {"file": str(file), "index": unseen.indices[at], "name": unseen.names[at]}
            _check(values, row)
            yield row | (
                {"values": values} if classes is None else _ranked(values, labels_of(job), top)
            )


def labels_of(job: Job) -> Sequence[str]:
    """The names of the classes, their numbers where the data has none."""
    facts = job.dataset.facts
    return facts.labels or [str(number) for number in range(facts.classes or 0)]


def _check(values: Sequence[float], row: dict[str, Any]) -> None:
    if not all(math.isfinite(value) for value in values):
        raise NumericsError(
            f"the model's output for {row['file']}, sample {row['index']}, is not finite"
        )


def _ranked(values: Sequence[float], labels: Sequence[str], top: int) -> dict[str, Any]:
    """The `top` most probable classes, the lower number first among equals."""
    order = sorted(range(len(values)), key=lambda number: (-values[number], number))[:top]
    ranked = [{"label": labels[number], "probability": values[number]} for number in order]
    return {**ranked[0], "top": ranked}
