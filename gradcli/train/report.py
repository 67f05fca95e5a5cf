"""What a training tells whoever watches; the command line shows it, tests collect it."""

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
    """What an evaluation is of: which weights, the split, its samples, and the file of new data."""

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
        steps: that were made; `weights_sha256` is of the weights after them.
        measured: what the metrics of an evaluation are of; None for a training.
        skipped: those of the steps that were left out, because their figures were not finite.
        measured_step: whose weights the metrics are of: those of the best checkpoint, or the last.
        tables: metrics that are more than one number, by `classes` where those have names.
        baseline: what one answer to every sample reaches; None where no answer is known.
        absent: classes of which a split has no sample, by its name.
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
    skipped: int = 0
    measured: Measured | None = None
    verify_resume: Mapping[str, Any] | None = None


class Reporter(Protocol):
    """Called as the training goes on; must return soon and must not raise."""

    def started(self, run: str, step: int, total: int, per_epoch: int) -> None:
        """The run directory stands and everything was tried once; `step` of `total` are made."""

    def step(self, step: int, loss: float, rate: float) -> None:
        """An update was made; `rate` is the learning rate used."""

    def skipped(self, step: int, why: str) -> None:
        """A step was left out, because its loss or gradients are not finite."""

    def evaluated(self, step: int, metrics: Mapping[str, float]) -> None:
        """A split was evaluated."""

    def sampled(self, step: int, prompt: str, text: str) -> None:
        """A model of text wrote on behind a prompt."""

    def saved(self, step: int, path: str) -> None:
        """A checkpoint stands and was verified."""

    def note(self, text: str) -> None:
        """One line that the user should see."""

    def finished(self, result: Result) -> None:
        """The training ended."""
