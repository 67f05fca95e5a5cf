"""What a training is made of: plain values that a config fills in and the loop carries out."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from gradcli.errors import ConfigError

if TYPE_CHECKING:
    from gradcli.data import LoadedData
    from gradcli.engine import Tensor, nn, optim

Precision = Literal["float32", "tf32", "bf16"]
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class Schedule(Protocol):
    """What the base learning rate is multiplied by: a function of the step, and of its state.

    The state comes of evaluations alone, and most schedules have none.
    """

    def factor(self, step: int) -> float:
        """The multiplier at `step`, counted from 0."""

    def watch(self, figures: Mapping[str, float]) -> None:
        """Take note of an evaluation."""

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run must know, fit for JSON."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""


@dataclass(frozen=True)
class Expectation:
    """A figure that the run must reach: `metric comparison value`, `val.accuracy >= 0.97`."""

    metric: str
    comparison: str
    value: float

    def holds(self, value: float) -> bool:
        """Whether `value` meets it; NaN meets nothing."""
        return COMPARISONS[self.comparison](value, self.value)

    def __str__(self) -> str:
        return f"{self.metric} {self.comparison} {self.value:g}"


@dataclass(frozen=True)
class EarlyStop:
    """Stop when `metric` has not improved by `min_delta` in `patience` evaluations running."""

    metric: str
    patience: int
    min_delta: float = 0.0


@dataclass(frozen=True)
class Settings:
    """The `train:` section: how long, in which portions, and what is watched.

    Attributes:
        batch: samples of one update.
        micro_batch: samples of one forward pass; the gradients of a batch are added up.
        epochs: passes over the training split; None when `steps` says how long.
        steps: updates; None when `epochs` says how long.
        clip: largest norm of all gradients together; None leaves them alone.
        clip_value: largest size of each number in a gradient, before that.
        ema: the share that the average of the weights keeps at each step; None has no average.
        drop_last: leave out an epoch's last, smaller batch.
        best: the metric whose best checkpoint is kept, such as `val.accuracy`.
        eval_every: steps between evaluations; None evaluates after each epoch.
        checkpoint_every: steps between checkpoints; None saves after each epoch.
        keep: how many of the newest checkpoints stay; the best one stays as well.
        log_every: steps between two lines of the log.
        precision: "float32"; "bf16" computes model and loss under autocast; "tf32" may round what
            products multiply.
        capture: replay recorded steps; False runs each one eagerly, with the same bits.
    """

    batch: int
    seed: int = 1
    epochs: int | None = None
    steps: int | None = None
    micro_batch: int | None = None
    clip: float | None = None
    clip_value: float | None = None
    ema: float | None = None
    drop_last: bool = False
    best: str | None = None
    early_stop: EarlyStop | None = None
    eval_every: int | None = None
    checkpoint_every: int | None = None
    keep: int = 2
    log_every: int = 50
    capture: bool = True
    precision: Precision = "float32"


def steps_per_epoch(settings: Settings, samples: int) -> int:
    """How many batches an epoch has; an epoch without any is an error."""
    batches, rest = divmod(samples, settings.batch)
    steps = batches + (1 if rest and not settings.drop_last else 0)
    if steps == 0:
        raise ConfigError(
            f"an epoch has no step: {samples} training samples, batch {settings.batch}, "
            f"drop_last {str(settings.drop_last).lower()}",
            code="E122",
            notes=(
                f"set train.batch to {max(samples, 1)} or less",
                "or set train.drop_last to false",
            ),
        )
    return steps


def total_steps(settings: Settings, samples: int) -> int:
    """How many updates the whole training makes."""
    if settings.steps is not None:
        steps_per_epoch(settings, samples)
        return settings.steps
    return (settings.epochs or 0) * steps_per_epoch(settings, samples)


def as_they_are(outputs: Tensor) -> Tensor:
    """Outputs that are scores of the classes, or values."""
    return outputs


@dataclass(frozen=True)
class Job:
    """Everything a training needs, built and loaded.

    Attributes:
        loss: takes (outputs, targets) of a batch, gives their mean loss.
        mass: what targets count in that mean; None where all samples count alike.
        answers: what the model's outputs say, a score for each class or values: metrics and
            predictions are of these.
        metrics: names of gradcli.train.metrics.METRICS, beside the loss.
        optimizer_name: the config's name, kept in checkpoints and compared on resume.
        resolved: the whole config with every default, as plain values.
        stated: the same without defaults: of a run that an older version began, all that it knew.
        sources: the config file and the files it extends, as written; the config itself first.
        code: own Python files by name; copied into the run, where they are run again.
        begin: gives a new run its pretrained weights, and says so in a line.
        model_layers: one line a layer, as shown by `check`.
    """

    name: str
    model: nn.Module
    loss: Callable[[Tensor, Tensor], Tensor]
    metrics: tuple[str, ...]
    optimizer: optim.Optimizer
    optimizer_name: str
    schedule: Schedule
    dataset: LoadedData
    settings: Settings
    mass: Callable[[Tensor], Tensor] | None = None
    answers: Callable[[Tensor], Tensor] = as_they_are
    expect: tuple[Expectation, ...] = ()
    resolved: Mapping[str, Any] = field(default_factory=dict)
    stated: Mapping[str, Any] = field(default_factory=dict)
    sources: Sequence[tuple[Path, str]] = ()
    code: Mapping[str, str] = field(default_factory=dict)
    begin: Callable[[], str] | None = None
    model_layers: Sequence[str] = ()

    def to(self, device: str) -> Job:
        """The same training on a device: weights, what the optimizer keeps, and data move there."""
        if device == "cpu":
            return self
        self.model.to(device)
        self.optimizer.to(device)
        return replace(self, dataset=self.dataset.to(device))
