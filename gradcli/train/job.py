"""The job of a training: plain values that a config fills in and the loop carries out."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol, TypeAlias

from gradcli.data.targets import TargetScale
from gradcli.dataclass import dataclass
from gradcli.engine.kind import Bound, Count, NotNegative, Positive, Share, Whole, within
from gradcli.errors import CheckpointError, ConfigError
from gradcli.train.changeable import ANYTIME, FORKS
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.data import LoadedData
    from gradcli.data.facts import DataFacts
    from gradcli.engine import Tensor, nn, optim
    from gradcli.train.metrics import Metric
    from gradcli.train.value_origins import ValueOrigin

Precision = Literal["float32", "tf32", "bf16"]
Reduce = Literal["exact", "library"]
Loss: TypeAlias = "Callable[[Tensor, Tensor], Tensor]"
OnNonfinite = Literal["stop", "skip"]
Seed = Annotated[int, within("a whole number from 0 to 2^63 - 1", ge=0, le=2**63 - 1)]
Batch = Annotated[int, within("a whole number from 1 to 1000000", ge=1, le=1_000_000)]
Tokens = Annotated[int, within("a whole number from 1 to 10000", ge=1, le=10_000)]
Figure = Annotated[str, Bound("a metric with its split, such as val.accuracy")]
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


class LearningRateSchedule(Protocol):
    """A factor of the base learning rate: a function of the step, and of the schedule's state.

    The state depends only on evaluations, and most schedules have none.
    """

    def factor(self, step: int) -> float:
        """The multiplier at `step`, counted from 0."""

    def watch(self, figures: Mapping[str, float]) -> None:
        """Take note of an evaluation."""

    def state_dict(self) -> dict[str, Any]:
        """The state for a resume, fit for JSON."""

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Restore the state."""


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

    metric: Figure
    patience: Annotated[Count, FORKS] = 3
    min_delta: Annotated[NotNegative, FORKS] = 0.0


@dataclass(frozen=True)
class Ema:
    """A moving average of the weights, which evaluation and prediction use.

    Attributes:
        decay: the share that the average keeps at each step.
        warmup: at step t the decay is at most (1 + t) / (10 + t).
        buffers: running statistics and other buffers of floating-point numbers have an average too.
    """

    ALONE: ClassVar = "decay"

    decay: Annotated[Share, FORKS]
    warmup: bool = True
    buffers: bool = True


@dataclass(frozen=True)
class SampleSpec:
    """Text that a model writes after a prompt at each evaluation.

    Attributes:
        prompt: the beginning of the text; the result does not repeat it.
        tokens: how many characters or bytes to write.
        temperature: of the sampling; at 0 each token is the most probable one.
    """

    ALONE: ClassVar = "prompt"

    prompt: str
    tokens: Tokens = 100
    temperature: NotNegative = 1.0


@dataclass(frozen=True)
class TrainSettings:
    """The `train:` section: how long to train, in which batches, and what to watch.

    The fields are the keys, with their types and meanings.
    """

    batch: Annotated[Batch, "samples per update"]
    epochs: Annotated[
        Whole | None, "passes over the training split; 0 writes only the first checkpoint", ANYTIME
    ] = None
    steps: Annotated[Whole | None, "number of updates; set either `epochs` or `steps`", ANYTIME] = (
        None
    )
    seed: Annotated[Seed, "seed of all random numbers"] = 1
    micro_batch: Annotated[
        Batch | None,
        "samples per forward pass; the gradients of a batch's parts are added along a binary tree "
        "that depends only on their number; several ranks (`mpirun -n N`) share the parts, and "
        "use ceil(batch / N) by default",
        FORKS,
    ] = None
    clip: Annotated[Positive | None, "maximum norm of all gradients together", FORKS] = None
    clip_value: Annotated[
        Positive | None,
        "maximum absolute value of each gradient element; applied before `clip`",
        FORKS,
    ] = None
    on_nonfinite: Annotated[
        OnNonfinite,
        "action if a step's loss or gradients are not finite: `stop` ends the run before the "
        "update; `skip` skips the step and continues, and stops after 10 such steps in a row "
        "([runs.md](runs.md))",
        FORKS,
    ] = "stop"
    ema: Annotated[
        Ema | None,
        Bound("a number in [0, 1), or a map {decay, warmup, buffers}"),
        "a number such as `0.999`, or `{decay, warmup: true, buffers: true}`: the decay of a "
        "moving average of the weights at each step, lower in the first steps; `val`, `test`, "
        "`gradcli eval` and `predict` use the average",
    ] = None
    sampler: Annotated[
        Literal["balanced"] | None,
        "`balanced`: an epoch draws as many samples as the split has, each class equally often; by "
        "default each sample once",
        FORKS,
    ] = None
    drop_last: Annotated[bool, "skip an epoch's last, smaller batch"] = False
    best: Annotated[
        Figure | None,
        "keep the checkpoint with the best value of this figure, such as `val.accuracy`; the "
        "summary, `expect`, `gradcli eval` and `predict` use that checkpoint",
    ] = None
    early_stop: Annotated[
        EarlyStop | None,
        "`{metric, patience: 3, min_delta: 0}`: stop when the metric has not improved by "
        "`min_delta` in `patience` consecutive evaluations; its best checkpoint is kept and used "
        "like that of `best`; `best` takes precedence",
    ] = None
    eval_every: Annotated[
        Count | None, "steps between evaluations; by default after each epoch", FORKS
    ] = None
    sample: Annotated[
        SampleSpec | None,
        Bound("a text, or a map {prompt, tokens, temperature}"),
        "`{prompt, tokens: 100, temperature: 1}`: a text model continues the prompt by so many "
        "tokens at each evaluation (after each epoch if nothing is evaluated); the text depends "
        "only on seed and step, and the training keeps the same bits",
        ANYTIME,
    ] = None
    checkpoint_every: Annotated[
        Count | None, "steps between checkpoints; by default after each epoch", ANYTIME
    ] = None
    checkpoint_minutes: Annotated[
        Positive | None,
        "minutes after which to save a checkpoint if no other was saved; rank 0's clock decides, "
        "and the bits do not depend on it",
        ANYTIME,
    ] = None
    keep: Annotated[
        Count, "number of newest checkpoints to keep, in addition to the best", ANYTIME
    ] = 2
    log_every: Annotated[
        Count | None,
        "steps between two lines of the log; by default the steps of the run / 400, rounded to one "
        "digit that is not 0, at least 1: about 400 lines",
        ANYTIME,
    ] = None
    capture: Annotated[
        bool,
        "record the step once and replay it without Python; `false` runs each step eagerly, with "
        "the same bits",
        FORKS,
    ] = True
    reduce: Annotated[
        Reduce,
        "how several ranks add their gradients: `exact` gives the same bits on any number of "
        "ranks; `library` leaves order and bits to MPI or NCCL",
        ANYTIME,
    ] = "exact"
    timeout: Annotated[
        Positive, "seconds that ranks wait for a missing rank before they end", ANYTIME
    ] = 300.0
    precision: Annotated[
        Precision,
        "`bf16` computes model and loss in bfloat16 where that is safe, with float32 weights; "
        "`tf32` lets NVIDIA GPUs round the factors of products ([precision.md](precision.md))",
        FORKS,
    ] = "float32"

    @property
    def judge(self) -> Figure | None:
        """The figure that chooses the best checkpoint: `best`, or that of early stopping."""
        return self.best or (self.early_stop.metric if self.early_stop else None)


RECORDS = 400  # lines of a run's log on its steps, about


def steps_per_epoch(settings: TrainSettings, samples: int) -> int:
    """How many batches an epoch has; an epoch without any is an error."""
    batches, rest = divmod(samples, settings.batch)
    steps = batches + (1 if rest and not settings.drop_last else 0)
    if steps == 0:
        raise ConfigError(
            f"an epoch has no step: {quantity(samples, 'training sample')}, batch "
            f"{settings.batch}, drop_last {str(settings.drop_last).lower()}",
            code="E122",
            notes=(
                f"set train.batch to {max(samples, 1)} or less",
                "or set train.drop_last to false",
            ),
        )
    return steps


def total_steps(settings: TrainSettings, samples: int) -> int:
    """How many updates the whole training makes."""
    if settings.steps is not None:
        steps_per_epoch(settings, samples)
        return settings.steps
    return (settings.epochs or 0) * steps_per_epoch(settings, samples)


def logged_every(settings: TrainSettings, steps: int) -> int:
    """Steps between two lines of the log of a run of so many steps."""
    if settings.log_every is not None:
        return settings.log_every
    digits: int = 10 ** max(0, len(str(steps // RECORDS)) - 1)
    return max(1, (steps + RECORDS * digits // 2) // (RECORDS * digits) * digits)


def as_they_are(outputs: Tensor) -> Tensor:
    """Outputs that are scores of the classes, or values."""
    return outputs


@dataclass(frozen=True)
class ScaledLoss:
    """A loss of scaled targets, which takes targets in their own units."""

    plain: Callable[[Tensor, Tensor], Tensor]
    scale: TargetScale

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean loss of a batch."""
        return self.plain(outputs, self.scale.scaled(targets))


@dataclass(frozen=True)
class Job:
    """Everything a training needs, built and loaded.

    Attributes:
        loss: the mean loss of a batch's (outputs, targets). Targets are in the units of the data;
            if the loss scales them, the model's outputs are on that scale too.
        total_weight: the sum of the weights of targets in that mean; None if all count alike.
        postprocess: turns the model's outputs into scores of the classes, or values in the units of
            the data, for metrics and predictions.
        outputs: the inverse of `postprocess`.
        metrics: the metrics beside the loss, by name.
        optimizer_name: the config's name, kept in checkpoints and compared on resume.
        resolved: the whole config with every default, as plain values.
        explicit: the values that the config sets; for a run of an older version, all its values.
        origins: where each value of `resolved` comes from, by its path.
        sources: the config file and the files it extends, as written; the config itself first.
        code: the user's own Python files by name; the run keeps copies and executes those.
        begin: loads a new run's pretrained weights, and returns a line to show.
        absent: the classes without a sample in a split, by the split's name.
        fresh: builds the job again, with its first weights.
        model_layers: one line a layer, as shown by `check`.
    """

    name: str
    model: nn.Module
    loss: Loss
    metrics: Mapping[str, Metric]
    optimizer: optim.Optimizer
    optimizer_name: str
    schedule: LearningRateSchedule
    dataset: LoadedData
    settings: TrainSettings
    total_weight: Callable[[Tensor], Tensor] | None = None
    postprocess: Callable[[Tensor], Tensor] = as_they_are
    outputs: Callable[[Tensor], Tensor] = as_they_are
    expect: tuple[Expectation, ...] = ()
    resolved: Mapping[str, Any] = field(default_factory=dict)
    explicit: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, ValueOrigin] = field(default_factory=dict)
    sources: Sequence[tuple[Path, str]] = ()
    code: Mapping[str, str] = field(default_factory=dict)
    begin: Callable[[], str] | None = None
    absent: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fresh: Callable[[], Job] | None = None
    model_layers: Sequence[str] = ()

    def on_scale(self, scale: TargetScale) -> Job:
        """The same training with a model that outputs scaled targets."""
        plain = self.loss.plain if isinstance(self.loss, ScaledLoss) else self.loss
        loss = ScaledLoss(plain, scale)
        return replace(self, loss=loss, postprocess=scale.restored, outputs=scale.scaled)

    def as_fitted(self, facts: DataFacts | None, source: str) -> Job:
        """The same training with the facts on targets, and their scale, of the checkpoint `source`.

        Raises:
            CheckpointError: targets are scaled, and the checkpoint lacks the scale.
        """
        targets = facts.targets if facts else None
        scaled = isinstance(self.loss, ScaledLoss)
        if facts is not None and scaled and not (targets and targets.mean):
            raise CheckpointError(
                f"{source}: the metadata has no usable 'facts.targets': expected a mean and a "
                "deviation of each value, by which the targets were scaled"
            )
        if targets is None:
            return self
        new_facts = replace(self.dataset.facts, targets=targets)  # type: ignore[call-arg]
        job = replace(self, dataset=replace(self.dataset, facts=new_facts))
        return job.on_scale(TargetScale(targets.mean, targets.std)) if scaled else job

    def to(self, device: str, memory: int | None = None) -> Job:
        """The same training on a device: moves weights, optimizer state and data there.

        It uses at most `memory` bytes there, if that is given.
        """
        if device == "cpu":
            return self
        dataset = self.dataset.to(device, memory)  # first: it looks at what is free
        self.model.to(device)
        self.optimizer.to(device)
        return replace(self, dataset=dataset)
