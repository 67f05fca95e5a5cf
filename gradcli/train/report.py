"""Reporters: the events of a training, which the command line shows and tests collect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gradcli.dataclass import dataclass
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.train.baseline import Baseline
    from gradcli.train.metrics import Table


class Measured(NamedTuple):
    """The subject of an evaluation: the weights, the split, its samples, the file of new data."""

    weights: str
    split: str
    samples: int
    file: str = ""

    def __str__(self) -> str:
        where = self.file or f"split {self.split}"
        return f"{self.weights}, {where}, {quantity(self.samples, 'sample', form=',')}"


@dataclass(frozen=True)
class Result:
    """How a training or an evaluation ended.

    Attributes:
        steps: how many there were; `weights_sha256` is of the weights after them.
        measured: the subject of an evaluation; None for a training.
        skipped_steps: how many steps were left out, because they were not finite.
        measured_step: the step whose weights the metrics belong to: the best, or the last.
        tables: metrics that are more than one number, by `classes` if those have names.
        baseline: the figures of a constant answer; None if there is no such answer.
        absent: the classes without a sample in a split, by the split's name.
        verify_resume: the verdict of `train --verify-resume`; None without it.
    """

    run: str
    status: str
    steps: int
    seconds: float
    metrics: dict[str, float] = field(default_factory=dict)
    weights_sha256: str = ""
    measured_step: int | None = None
    tables: Mapping[str, Table] = field(default_factory=dict)
    classes: Sequence[str] = ()
    baseline: Baseline | None = None
    absent: Mapping[str, Sequence[str]] = field(default_factory=dict)
    skipped_steps: int = 0
    measured: Measured | None = None
    verify_resume: Mapping[str, Any] | None = None


class Reporter(Protocol):
    """Receives the events of a training; must return soon and must not raise."""

    def on_start(self, run: str, step: int, total: int, per_epoch: int) -> None:
        """The run directory exists and the preflight passed; `step` of `total` are complete."""

    def on_step(self, step: int, loss: float, rate: float) -> None:
        """A step is complete; `rate` is its learning rate."""

    def on_skip(self, step: int, reason: str) -> None:
        """A step was left out because its loss or gradients are not finite."""

    def on_evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
        """A split was evaluated."""

    def on_sample(self, step: int, prompt: str, text: str) -> None:
        """A model of text continued a prompt."""

    def on_save(self, step: int, path: str) -> None:
        """A checkpoint was saved and verified."""

    def note(self, text: str) -> None:
        """A line for the user."""

    def on_finish(self, result: Result) -> None:
        """The training ended."""
