"""A trained model applied to new files: labels with their probabilities, or values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.errors import ConfigError, NumericsError
from gradcli.train import precision

if TYPE_CHECKING:
    from gradcli.engine import Tensor
    from gradcli.train.job import Job


def predict(
    job: Job, file: Path, top: int, note: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """One record a sample: file, index, name, and what the model says of it.

    Of classes that is `label` and `probability` of the likeliest, `probabilities` of all by label,
    and `top`, the likeliest ones in order; of a regression `values`, by the name of the target.

    `note` is told what the user should know of the file.
    """
    unseen = job.dataset.read(file)
    for text in unseen.notes:
        note(text)
    classes = job.dataset.facts.classes
    size = job.settings.batch
    job.model.eval()
    outputs = engine.capture(
        _outputs_of(job), on_refusal=lambda _: None, eager=not job.settings.capture
    )
    for begin in range(0, len(unseen.names), size):
        end = min(begin + size, len(unseen.names))
        for at, values in enumerate(outputs(unseen.inputs[begin:end]).tolist(), begin):
            row = {"file": str(file), "index": unseen.indices[at], "name": unseen.names[at]}
            _check(values, row)
            yield row | (
                {"values": dict(zip(value_names(job, len(values)), values, strict=True))}
                if classes is None
                else _ranked(values, labels_of(job), top)
            )


def _outputs_of(job: Job) -> Callable[[Tensor], Tensor]:
    """For the inputs of some samples: a row each, of probabilities where there are classes.

    An image that stands for values, as an autoencoder's does, is the row of its pixels.
    """

    @engine.no_grad()
    def outputs(inputs: Tensor) -> Tensor:
        with precision.forward(job.settings):
            found = job.answers(job.model(inputs)).float()
        if job.dataset.facts.input_kind == "index":
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
    facts = job.dataset.facts
    return facts.labels or [str(number) for number in range(facts.classes or 0)]


def value_names(job: Job, count: int) -> Sequence[str]:
    """The names of the numbers in a target, which count from 0 where the data has no names."""
    names = job.dataset.facts.values
    return names if len(names) == count else [str(number) for number in range(count)]


def _check(values: Sequence[float], row: dict[str, object]) -> None:
    if not all(math.isfinite(value) for value in values):
        raise NumericsError(
            f"the model's output for {row['file']}, sample {row['index']}, is not finite"
        )


def _ranked(values: Sequence[float], labels: Sequence[str], top: int) -> dict[str, Any]:
    """The `top` most probable classes, the lower number first among equals."""
    order = sorted(range(len(values)), key=lambda number: (-values[number], number))[:top]
    ranked = [{"label": labels[number], "probability": values[number]} for number in order]
    return {**ranked[0], "probabilities": dict(zip(labels, values, strict=True)), "top": ranked}
