"""Metrics of labels computed from counts of classes among labels, predictions and hits."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Literal

from gradcli import engine
from gradcli.dataclass import dataclass
from gradcli.train.metrics.labels import label_rows
from gradcli.train.metrics.metric import State, Table, Task, Totals

if TYPE_CHECKING:
    from gradcli.engine import Tensor

Average = Literal["binary", "macro", "micro", "weighted", "none"]
MAX_MATRIX = 1000  # classes of a confusion matrix


@dataclass(frozen=True)
class _Averaged(Totals):
    """A share for each class, and their average."""

    targets = "labels"
    direction = "higher"

    average: Average = "binary"

    @staticmethod
    @abstractmethod
    def share(hits: int, predictions: int, labels: int) -> float:
        """The figure of a class."""

    def state(self, outputs: Tensor, targets: Tensor) -> State:
        """By class: how many hits, predictions and labels it has."""
        scores, labels = label_rows(outputs, targets)
        predictions, classes = scores.argmax(1), scores.shape[1]
        hits = (predictions == labels).long()
        return {
            "hits": _counts(labels, hits, classes),
            "predictions": _counts(predictions, engine.ones_like(predictions), classes),
            "labels": _counts(labels, engine.ones_like(labels), classes),
        }

    def finish(self, state: State) -> float | Table:
        """The average; leaves out a class that is neither among targets nor predictions."""
        counts = [state[name].tolist() for name in ("hits", "predictions", "labels")]
        if self.average == "micro":
            return self.share(*map(sum, counts))
        shares = [self.share(*row) for row in zip(*counts, strict=True)]
        if self.average == "none":
            return shares
        if self.average == "binary":
            return shares[1]
        _, predictions, labels = counts
        present = [a + n > 0 for a, n in zip(predictions, labels, strict=True)]
        weights = labels if self.average == "weighted" else present
        total = sum(w * s for w, s in zip(weights, shares, strict=True))
        return float(total / sum(weights))

    @property
    def table(self) -> str:
        """A figure for each class."""
        return "a list with a figure for each class" if self.average == "none" else ""

    def misfit(self, task: Task) -> tuple[str, str] | None:
        """Of two classes the second is the one that counts; of more there is no such class."""
        if super().misfit(task) or self.average != "binary" or task.classes == 2:
            return super().misfit(task)
        return (
            f"with average binary is for two classes, this data has {task.classes}",
            "give it {average: macro}, micro or weighted",
        )


@dataclass(frozen=True)
class Precision(_Averaged):
    """The share of a class's predictions that are right; 0 if there are none.

    `binary` scores the second of two classes, `macro` averages the classes that occur, `weighted`
    weighs them by their number of labels, `micro` counts all classes together, `none` lists all
    classes.
    """

    @staticmethod
    def share(hits: int, predictions: int, labels: int) -> float:
        """Hits divided by predictions."""
        return hits / predictions if predictions else 0.0


@dataclass(frozen=True)
class Recall(_Averaged):
    """The share of a class's labels that the model predicts; 0 if there are none.

    `average` as in precision.
    """

    @staticmethod
    def share(hits: int, predictions: int, labels: int) -> float:
        """Hits divided by labels."""
        return hits / labels if labels else 0.0


@dataclass(frozen=True)
class F1(_Averaged):
    """2 hits / (predictions + labels) of a class; 0 if there are none. `average`: see precision."""

    @staticmethod
    def share(hits: int, predictions: int, labels: int) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * hits / (predictions + labels) if predictions + labels else 0.0


@dataclass(frozen=True)
class Confusion(Totals):
    """The confusion matrix: one row per class of the labels, one column per prediction."""

    targets = "labels"
    direction = "neither"

    def state(self, outputs: Tensor, targets: Tensor) -> State:
        """The counts of one batch."""
        scores, labels = label_rows(outputs, targets)
        classes = scores.shape[1]
        cells = labels * classes + scores.argmax(1)
        counts = _counts(cells, engine.ones_like(cells), classes * classes)
        return {"counts": counts.reshape(classes, classes)}

    def finish(self, state: State) -> Table:
        """Rows of whole numbers."""
        matrix: list[list[int]] = state["counts"].tolist()
        return matrix

    @property
    def table(self) -> str:
        """Counts of two classes each."""
        return "a matrix"

    def misfit(self, task: Task) -> tuple[str, str] | None:
        """Nobody reads a larger one, and it takes memory."""
        if super().misfit(task) or task.classes <= MAX_MATRIX:
            return super().misfit(task)
        return f"is for up to {MAX_MATRIX} classes, this data has {task.classes}", "leave it out"


def _counts(indices: Tensor, amounts: Tensor, size: int) -> Tensor:
    """The sum of the amounts at each place."""
    return engine.zeros(size, dtype=engine.int64).scatter_add(0, indices, amounts)
