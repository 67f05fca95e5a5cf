"""A metric of a user's own: its annotated fields are its keys, and it is tried early."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from gradcli import engine
from gradcli.config.own_sentence import one_sentence
from gradcli.config.row import Row
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor, recording
from gradcli.engine.kind import format_value
from gradcli.errors import ConfigError, ShapeError
from gradcli.train.metrics import Direction, Metric, State, Targets, Task, label_rows

PARTS = {"state": ("outputs", "targets"), "merge": ("states",), "finish": ("state",)}
MOST = 2**24  # numbers that outputs may have for a metric to be tried early


class OwnMetric(Row):
    """A class that is marked as a metric, in the table of metrics."""

    def __init__(self, cls: type, path: Path) -> None:
        self.path = path
        self.name = cls.__name__
        self.targets: Targets = getattr(cls, "targets", "labels")
        self.direction: Direction = getattr(cls, "direction", None)  # type: ignore[assignment]
        problem = self._problem(cls)
        if problem:
            raise ConfigError(f"{path}: {self.name} {problem}", code="E104")
        with one_sentence(path):
            super().__init__(dataclass(frozen=True)(cls), leave=("targets", "direction"))
            assert self.parameters is not None  # an unknown type is found here
        if "name" in self.keys:
            raise ConfigError(
                f"{path}: {self.name} has a field 'name', and in YAML that key says what the "
                "figure is called; rename the field",
                code="E104",
            )

    def _problem(self, cls: type) -> str:
        """What is wrong with the class itself."""
        for part, names in PARTS.items():
            call = f"{part}({', '.join(('self', *names))})"
            if not callable(getattr(cls, part, None)):
                return f"is marked as a metric and has no {call}"
            try:
                inspect.signature(getattr(cls, part)).bind(None, *names)
            except TypeError as error:
                return f"must have {call}: {error}"
        if self.direction not in get_args(Direction):
            return f"must have direction = 'higher', 'lower' or 'neither', got {self.direction!r}"
        if self.targets not in get_args(Targets):
            return f"has targets = {self.targets!r}; it must be 'labels' or 'values'"
        return ""

    def __call__(self, **values: Any) -> CheckedMetric:
        """The metric with these values of its keys."""
        with one_sentence(self.path):
            inner = self.make(**{self.keys[key]: value for key, value in values.items()})
        return CheckedMetric(inner, self.targets, self.direction, self.path)


@dataclass(frozen=True)
class CheckedMetric(Metric):
    """What the parts of a user's class give, if that is what they must give."""

    inner: Any
    targets: Targets
    direction: Direction
    path: Path

    def state(self, outputs: Tensor, targets: Tensor) -> State:
        """Of a row for each label, or of outputs in the shape of the targets.

        What it raises is left as it is: an engine that records it must see what it cannot record.
        """
        if self.targets == "labels":
            outputs, targets = label_rows(outputs, targets)
        else:
            outputs = outputs.reshape(targets.shape)
        state = self._plain("state", self.inner.state(outputs, targets))
        if recording.current() is not None:
            return state  # its numbers are the same for each batch of this size
        with engine.device("cpu"):
            return {key: _tensor(value) for key, value in state.items()}

    def merge(self, states: Sequence[State]) -> State:
        """As the class does it."""
        with one_sentence(self.path):
            return self._plain("merge", self.inner.merge(list(states)))

    def finish(self, state: State) -> float:
        """As the class does it; what divides by 0 is not defined."""
        with one_sentence(self.path):
            try:
                figure = self.inner.finish(state)
            except ZeroDivisionError:
                return math.nan
            if isinstance(figure, Tensor) and not figure.shape:
                figure = figure.item()
            if isinstance(figure, bool) or not isinstance(figure, int | float):
                raise ShapeError(
                    f"{self._name}.finish must give one number, got {format_value(figure)}"
                )
            return float(figure)

    def attempt(self, task: Task) -> None:
        """All parts on outputs of zeros for two samples, unless those are huge; as three batches.

        A run tries it again, on its first batch.
        """
        labels = self.targets == "labels"
        shape = (2, *task.target, *([task.classes] if labels else []))
        if math.prod(shape) > MOST:
            return
        targets = engine.zeros(2, *task.target, dtype=engine.int64 if labels else engine.float32)
        with one_sentence(self.path), engine.no_grad():
            states = [_numbers(self.state(engine.zeros(*shape), targets)) for _ in range(3)]
        self.finish(self.merge([self.merge(states[:2]), states[2]]))

    @property
    def _name(self) -> str:
        return type(self.inner).__name__

    def _plain(self, part: str, state: Any) -> State:
        """A state that is plain data."""
        if not isinstance(state, Mapping) or not state:
            raise ShapeError(
                f"{self._name}.{part} must give a dict of tensors and numbers by name, "
                f"got {format_value(state)}"
            )
        for key, value in state.items():
            if isinstance(value, bool) or not isinstance(value, Tensor | int | float):
                raise ShapeError(
                    f"{self._name}.{part} gives {format_value(value)} as {key!r}; a state has "
                    "tensors, ints and floats"
                )
        return state


def _tensor(value: Any) -> Tensor:
    """A number as a tensor, so that batches may differ in it."""
    if isinstance(value, Tensor):
        return value
    return engine.tensor(value, dtype=engine.int64 if isinstance(value, int) else engine.float64)


def _numbers(state: State) -> State:
    """Tensors without dimensions as numbers, as in an evaluation."""
    return {
        key: value.item() if isinstance(value, Tensor) and not value.shape else value
        for key, value in state.items()
    }
