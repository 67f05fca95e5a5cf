"""The samples that the model was most wrong about, as pictures or as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.report.classes import class_name
from gradcli.report.fields import count, figure, items, mapping, percent, text
from gradcli.report.page_images import PageImage, page_images
from gradcli.report.run_files import number
from gradcli.train.safetensors_file import RawTensor

MOST = 24
COLUMNS = 40
SHORT = 60  # letters of a cell


@dataclass(frozen=True)
class WorstSample:
    """One sample: which one, how wrong, truth and guess, and what it looks like."""

    index: str
    loss: str
    truth: str
    guess: str
    certainty: str
    wrong: bool
    images: Sequence[tuple[str, PageImage]]
    row: Sequence[str]


@dataclass(frozen=True)
class Worst:
    """The most wrong samples, most wrong first; `columns` name the cells of their rows."""

    samples: Sequence[WorstSample]
    columns: Sequence[str]
    images: bool


def worst(evaluation: Mapping[str, Any], tensors: Mapping[str, RawTensor]) -> Worst | None:
    """The samples that evaluation.json lists as worst; None if there are none."""
    entries = [mapping(entry) for entry in items(evaluation.get("worst"))[:MOST]]
    if not entries:
        return None
    columns = [text(name) for name in items(evaluation.get("columns"))[:COLUMNS]]
    task = evaluation.get("task")
    images = _images(evaluation, tensors, task)
    samples = []
    for position, entry in enumerate(entries):
        row = mapping(entry.get("row"))
        certainty = number(entry.get("certainty"))
        truth, guess = (_answer(evaluation, task, entry.get(key)) for key in ("truth", "guess"))
        samples.append(
            WorstSample(
                index=count(entry.get("index")),
                loss=figure(entry.get("loss")),
                truth=truth,
                guess=guess,
                certainty="" if certainty is None else percent(certainty),
                wrong=truth != guess,
                images=[(name, rows[position]) for name, rows in images if position < len(rows)],
                row=[_cell(row.get(name)) for name in columns] if row else [],
            )
        )
    return Worst(samples, columns, any(sample.images for sample in samples))


def _images(
    evaluation: Mapping[str, Any], tensors: Mapping[str, RawTensor], task: object
) -> list[tuple[str, list[PageImage]]]:
    images = []
    if evaluation.get("pictures") is True:
        images.append(("input", page_images(tensors, "worst_inputs")))
    if task == "images":
        images.append(("output", page_images(tensors, "worst_outputs")))
        images.append(("target", page_images(tensors, "worst_targets")))
    return [(name, rows) for name, rows in images if rows]


def _answer(evaluation: Mapping[str, Any], task: object, value: object) -> str:
    if value is None:
        return ""
    if task == "classes":
        return class_name(evaluation, value)
    return (
        ", ".join(figure(item) for item in value[:8]) if isinstance(value, list) else figure(value)
    )


def _cell(value: object) -> str:
    words = f"{value:.6g}" if isinstance(value, float) else text(value)
    return words if len(words) <= SHORT else words[:SHORT] + "..."
