"""Metric: a figure computed from states of batches, its task, and which way is better."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from gradcli import engine
from gradcli.dataclass import dataclass

if TYPE_CHECKING:
    from gradcli.engine import Tensor

Direction = Literal["higher", "lower", "neither"]
Targets = Literal["labels", "values"]
# Tensors, ints and floats by name: plain data, which can be kept, merged anywhere, or sent.
State = Mapping[str, Any]
Table = list[float] | list[list[int]]


@dataclass(frozen=True)
class Task:
    """What a model predicts.

    Attributes:
        targets: "labels" are class numbers, "values" floats.
        target: the shape of one target.
        classes: the number of classes; 0 for values.
        text: labels are the next tokens of a text.
        token_bytes: the length of each token as text in UTF-8; () where that is not known.
    """

    targets: Targets
    target: tuple[int, ...] = ()
    classes: int = 0
    text: bool = False
    token_bytes: tuple[int, ...] = ()


class Metric(ABC):
    """A figure of a split: finish(merge(states of its batches, in order)).

    The fields of a metric are its keys in YAML. It is a value: it keeps nothing between calls.

    Attributes:
        targets: what it makes sense for.
        direction: which way is better.
        grows: its states grow with the samples, and to merge them once is enough.
    """

    targets: Targets
    direction: Direction
    grows = False

    @abstractmethod
    def state(self, outputs: Tensor, targets: Tensor) -> State:
        """The state of one batch; it is captured, so only tensors may differ between batches.

        Outputs are scores of the classes, or values.
        """

    @abstractmethod
    def merge(self, states: Sequence[State]) -> State:
        """Merge consecutive states, of which some may be merged already.

        Tensors are on the CPU, and those without dimensions have become numbers.
        """

    def merge_columns(self, columns: Mapping[str, Sequence[Any]]) -> State:
        """The same, with the states' values listed by entry."""
        rows = zip(*columns.values(), strict=True)
        return self.merge([dict(zip(columns, row, strict=True)) for row in rows])

    @abstractmethod
    def finish(self, state: State) -> float | Table:
        """The figure; NaN where it is not defined."""

    def for_task(self, task: Task) -> Metric:
        """The metric adapted to a task that it fits."""
        return self

    @property
    def table(self) -> str:
        """A description of a figure of more than one number, else ""."""
        return ""

    def misfit(self, task: Task) -> tuple[str, str] | None:
        """Why it makes no sense for a task, and the cure."""
        if self.targets == task.targets:
            return None
        cure = "accuracy" if task.targets == "labels" else "mae"
        return f"is for {self.targets}, this data has {task.targets} as targets", f"use {cure}"


class Totals(Metric):
    """A metric whose states merge by addition."""

    def merge(self, states: Sequence[State]) -> State:
        """The sum of each entry; sums of floats are of 64 bits."""
        return {name: add_up([state[name] for state in states]) for name in states[0]}

    def merge_columns(self, columns: Mapping[str, Sequence[Any]]) -> State:
        """Without a state for each batch: there are many."""
        return {name: add_up(column) for name, column in columns.items()}


class Mean(Totals):
    """A metric whose states are a sum over the batch and how many it is of."""

    def finish(self, state: State) -> float:
        """The mean."""
        return float(state["total"] / state["count"])


def add_up(parts: Sequence[Any]) -> Any:
    """The sum of numbers, or of tensors of one shape."""
    if not isinstance(parts[0], engine.Tensor):
        return sum(parts)
    stacked = engine.stack(list(parts))
    return (stacked.double() if stacked.is_floating_point() else stacked).sum(0)


def direction_of(name: str, metrics: Mapping[str, Metric]) -> Direction:
    """Which way `val.accuracy` is better; any other name is a loss."""
    metric = name.partition(".")[2]
    return metrics[metric].direction if metric in metrics else "lower"


def better(direction: Direction, value: float, than: float | None, margin: float = 0.0) -> bool:
    """Whether `value` beats `than` by over `margin`; what is not finite never does."""
    if not math.isfinite(value):
        return False
    if than is None:
        return True
    return value > than + margin if direction == "higher" else value < than - margin
