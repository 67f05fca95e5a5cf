"""How a classifier did: confusion, precision and recall of each class, and its calibration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gradcli.dataclass import dataclass
from gradcli.report.fields import count, figure, items, percent, text, whole
from gradcli.report.run_files import floats
from gradcli.train.safetensors_file import RawTensor

MATRIX = 30  # classes of a whole matrix
PAIRS = 24
LEVELS = 12  # of colour
BINS = 10


class Cell(NamedTuple):
    """A count of the matrix, and how strongly it is coloured; right ones are on the diagonal."""

    words: str
    level: int
    right: bool


class ClassRow(NamedTuple):
    """One class: its samples, and how many of them and of its guesses are right, as shares."""

    name: str
    samples: int
    precision: float | None
    recall: float | None

    @property
    def words(self) -> tuple[str, str, str]:
        """Samples, precision and recall for people."""
        return count(self.samples), _share(self.precision), _share(self.recall)


def _share(value: float | None) -> str:
    return "-" if value is None else percent(value)


class ConfusedPair(NamedTuple):
    """So many samples of one class that were taken for another."""

    truth: str
    guess: str
    samples: int
    share: str


class Bin(NamedTuple):
    """Guesses of about the same certainty, and the share of them that is right."""

    certainty: float
    right: float
    samples: int


@dataclass(frozen=True)
class Classes:
    """What a page shows of a classifier's answers."""

    names: Sequence[str]
    matrix: Sequence[tuple[str, Sequence[Cell]]]
    rows: Sequence[ClassRow]
    classes: int
    pairs: Sequence[ConfusedPair]
    bins: Sequence[Bin]
    error: str


def class_name(evaluation: Mapping[str, Any], number: object) -> str:
    """The name of a class by its number, or the number where the data has no names."""
    names = items(evaluation.get("classes"))
    index = whole(number)
    if index is not None and index < len(names):
        return text(names[index])[:80]
    return text(number)[:80]


def classes(evaluation: Mapping[str, Any], tensors: Mapping[str, RawTensor]) -> Classes | None:
    """The answers of the last evaluation; None where there is no matrix and no output."""
    matrix = _matrix(evaluation.get("confusion"))
    bins = _bins(tensors)
    if not matrix and not bins:
        return None
    names = [class_name(evaluation, number) for number in range(len(matrix))]
    small = 0 < len(matrix) <= MATRIX
    rows = _rows(matrix, names)
    if not small:
        rows = sorted(rows, key=lambda row: row.recall if row.recall is not None else 2.0)[:MATRIX]
    return Classes(
        names=names if small else [],
        matrix=_cells(matrix, names) if small else [],
        rows=rows,
        classes=len(matrix),
        pairs=_pairs(matrix, names),
        bins=bins,
        error=_calibration_error(bins),
    )


def _matrix(value: object) -> list[list[int]]:
    """A square of counts; empty if the value is none."""
    rows = [items(row) for row in items(value)]
    square = all(len(row) == len(rows) for row in rows)
    whole_ones = square and all(whole(cell) is not None for row in rows for cell in row)
    return rows if whole_ones else []


def _cells(matrix: list[list[int]], names: Sequence[str]) -> list[tuple[str, list[Cell]]]:
    """Shade each cell by the root of its share, so that few mistakes can be seen too."""
    table = []
    for index, row in enumerate(matrix):
        total = sum(row) or 1
        cells = [
            Cell(
                f"{value:,}" if value else "",
                math.ceil(LEVELS * (value / total) ** 0.4) if value else 0,
                index == at,
            )
            for at, value in enumerate(row)
        ]
        table.append((names[index], cells))
    return table


def _rows(matrix: list[list[int]], names: Sequence[str]) -> list[ClassRow]:
    rows = []
    for index, row in enumerate(matrix):
        samples, guesses = sum(row), sum(counts[index] for counts in matrix)
        right = row[index]
        rows.append(
            ClassRow(
                names[index],
                samples,
                right / guesses if guesses else None,
                right / samples if samples else None,
            )
        )
    return rows


def _pairs(matrix: list[list[int]], names: Sequence[str]) -> list[ConfusedPair]:
    wrong = [
        (number, index, at)
        for index, row in enumerate(matrix)
        for at, number in enumerate(row)
        if number and at != index
    ]
    wrong.sort(key=lambda entry: (-entry[0], entry[1], entry[2]))
    return [
        ConfusedPair(names[index], names[at], number, percent(number / sum(matrix[index])))
        for number, index, at in wrong[:PAIRS]
    ]


def _bins(tensors: Mapping[str, RawTensor]) -> list[Bin]:
    """Ten bins of the kept samples by confidence: its mean, and the correct samples."""
    sums = [[0.0, 0.0, 0.0] for _ in range(BINS)]
    labels = floats(tensors, "targets")
    for scores, label in zip(floats(tensors, "outputs"), labels, strict=False):
        finite = [score for score in scores if score is not None]
        if len(finite) != len(scores) or len(finite) < 2 or len(label) != 1:
            continue
        best = max(finite)
        certainty = 1 / sum(math.exp(max(score - best, -700.0)) for score in finite)
        part = sums[min(BINS - 1, int(certainty * BINS))]
        part[0] += certainty
        part[1] += finite.index(best) == label[0]
        part[2] += 1
    return [Bin(total / size, right / size, int(size)) for total, right, size in sums if size]


def _calibration_error(bins: Sequence[Bin]) -> str:
    """The mean distance between confidence and accuracy over all samples."""
    size = sum(part.samples for part in bins)
    if not size:
        return ""
    apart = sum(part.samples * abs(part.certainty - part.right) for part in bins)
    return figure(apart / size)
