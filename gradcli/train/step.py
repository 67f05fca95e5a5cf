"""A training step: a function of its number and its samples' indices, nothing else.

All that changes from step to step comes as tensors, and no value is read back inside, so the step
is captured once and many steps are replayed without Python in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.data import waiting
from gradcli.data.augmented import Augmented, epoch_state
from gradcli.engine import distributed, optim
from gradcli.engine.array import copy_into
from gradcli.engine.device import scope
from gradcli.engine.distributed import ALONE
from gradcli.engine.nn.batch_norm import BatchStatistics, collect_statistics
from gradcli.engine.optim import clip
from gradcli.train import precision
from gradcli.train.average import Average
from gradcli.train.gradient_norm import GradientNorm, norm_of
from gradcli.train.job import Loss, steps_per_epoch
from gradcli.train.parts import Gradients, Outline, PartResult, Shares, cut
from gradcli.train.progress import StepResults

if TYPE_CHECKING:
    from gradcli.data import Split
    from gradcli.engine import Tensor, nn
    from gradcli.engine.distributed import Group
    from gradcli.engine.program.capture import Captured
    from gradcli.train.balanced import Balanced
    from gradcli.train.job import Job


NORMS = 5  # of the latest steps, kept for messages


class TrainingStep:
    """The steps of one job.

    `note` gets remarks: how gradients travel between GPUs, and why steps run eagerly.

    The ranks of `group`, by default all that this process joined, share the parts of a batch.

    Attributes:
        norms: gradient norms before clipping, by step, of the latest steps that computed them.
    """

    def __init__(
        self,
        job: Job,
        split: Split,
        note: Callable[[str], None],
        group: Group | None = None,
        capture: Callable[..., Captured] = engine.capture,
    ) -> None:
        group = group or distributed.group()
        self._job = job
        self._step = OneStep(job, split, group)
        if group.size > 1:
            from gradcli.engine.distributed.gpus import way  # not needed by one rank

            words = way(group, next(job.model.parameters()).device).words
            if words:
                note(words)
        self.captured = capture(
            self._step,
            on_fallback=lambda reason: note(f"the steps run eagerly, one by one: {reason}"),
            eager=not job.settings.capture,
        )
        self.norms: dict[int, float] = {}
        self._norm = GradientNorm(job.model.parameters(), capture)

    @property
    def average(self) -> Average | None:
        """The moving average of the weights, if there is one."""
        return self._step.average

    @property
    def looks(self) -> bool:
        """Whether each step computes the norm of its gradients."""
        return self._step.looks

    def rates(self, step: int) -> list[float]:
        """The learning rate of each group at a step, from 1."""
        return self._step.rates(step)

    def run(self, first: int, indices: Tensor) -> StepResults:
        """Run the steps from number `first` (from 1) on, one for each row of indices."""
        inputs = self._step.inputs(range(first, first + indices.shape[0]))
        result = self.captured.steps(indices, *inputs)
        columns = iter(
            [] if result.outputs is None else [output.tolist() for output in result.outputs]
        )
        losses: list[float] = next(columns, [])
        norms: list[float] = next(columns, []) if self.looks else []
        before = next(columns, norms)
        if result.error is not None and len(losses) == result.done and self._step.loss is not None:
            losses.append(self._step.loss.item())  # an eager step that failed returns nothing
            norms += [] if self._step.norm is None else [self._step.norm.item()]
        self._keep(dict(enumerate(before[: result.done], first)))
        return StepResults(losses, norms, result.done, result.error)

    def _keep(self, norms: Mapping[int, float]) -> None:
        self.norms = dict([*self.norms.items(), *norms.items()][-NORMS:])

    @property
    def waited(self) -> float:
        """The seconds that the steps so far waited for their samples."""
        return waiting.total() + sum(program.sampling_seconds for program in self.captured.programs)

    def norm_at(self, step: int) -> float:
        """The norm of the gradients of the latest step, before any clipping."""
        if step not in self.norms:
            self._keep({step: self.norm()})
        return self.norms[step]

    def norm(self) -> float:
        """The norm of the current gradients."""
        return self._norm(lambda: self.captured.programs)

    def repeat(self, step: int, indices: Tensor, loss: Loss) -> Tensor:
        """Repeat a step (from 1) eagerly, without its update; returns its loss.

        `loss` replaces the job's, so that the caller sees when it is called.
        """
        engine.manual_seed(self._job.settings.seed, step=step)
        trial = copy(self._step)
        trial.job = replace(self._job, loss=loss)
        trial.ranks = None  # each rank computes all parts, and sees where it began
        with precision.products(self._job.settings):
            result = trial.gradients(indices, engine.get_rng_state())
        self.put_back()
        return result

    def put_back(self) -> None:
        """The model's buffers as they were before the latest step that was begun."""
        self._step.put_back()

    def samples(self, indices: Tensor) -> Tensor:
        """The samples for the indices of a step."""
        return self._step.samples(indices)

    def batch(self, step: int, indices: Tensor) -> tuple[Tensor, Tensor]:
        """The samples as a step sees them."""
        engine.manual_seed(self._job.settings.seed, step=step)
        return self._step.batch(indices, engine.get_rng_state())


class OneStep:
    """The step as a function that can be captured."""

    def __init__(self, job: Job, split: Split, group: Group = ALONE) -> None:
        self.job = job
        self._split = split
        self._parameters = list(job.model.parameters())
        self._sums = Gradients(self._parameters)
        self._rates = [float(group["lr"]) for group in job.optimizer.param_groups]
        ema = job.settings.ema
        self.ranks: Shares | None = None
        self.average = None if ema is None else Average(job.model, ema)
        self.loss: Tensor | None = None  # of the latest eager step
        self.norm: Tensor | None = None
        self.whole_norm: Tensor | None = None  # before `clip_value`, if that is set
        self.buffers = saved_buffers(job.model)
        self.before = [buffer.clone() for buffer in self.buffers]
        skips = job.settings.on_nonfinite == "skip"
        self.looks = skips or job.settings.clip is not None
        # On a GPU an error shows only when a value is read.
        self._reads = skips and self._parameters[0].device != "cpu"
        self._balanced: Balanced | None = None
        if job.settings.sampler is not None:
            from gradcli.train.balanced import Balanced  # rarely needed

            self._balanced = Balanced.of(split)
        if group.size > 1:
            self.ranks = Shares(self._outline(), group, job.settings.reduce)

    def _outline(self) -> Outline:
        """The outline of each part, from a trial with the first samples."""
        settings = self.job.settings
        count = min(settings.micro_batch or settings.batch, self._split.size)
        first, state = (
            engine.arange(count, dtype=engine.int64),
            engine.tensor([settings.seed, 1, 0]),
        )
        with precision.products(settings):
            outline = Outline.of(self._sums, lambda: self._backward(first, state))
        self.put_back()
        return outline

    def put_back(self) -> None:
        """The model's buffers as they were before the latest step that was begun."""
        for buffer, before in zip(self.buffers, self.before, strict=True):
            copy_into(buffer.array, before.array)

    def __call__(
        self, indices: Tensor, rates: Tensor, state: Tensor, decay: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Do a step; returns its loss, and the norm of its gradients if it needs that.

        With `clip_value` the norm before it comes last, since it cannot be computed later. If a
        figure is not finite, the step ends before the update. `decay` is that of the average, if
        there is one.
        """
        self.job.optimizer.take_rates(rates)
        for before, buffer in zip(self.before, self.buffers, strict=True):
            copy_into(before.array, buffer.array)
        self.norm = self.whole_norm = None
        with precision.products(self.job.settings):
            self.loss = loss = self.gradients(indices, state)
            self._require_finite(loss)
            self.update(decay)
        return tuple(figure for figure in (loss, self.norm, self.whole_norm) if figure is not None)

    def rates(self, step: int) -> list[float]:
        """The learning rate of each group at a step, from 1."""
        factor = self.job.schedule.factor(step - 1)
        return [rate * factor for rate in self._rates]

    def inputs(self, steps: Sequence[int]) -> list[Tensor]:
        """The arguments of steps (from 1) beside their indices, a row for each step."""
        states = []
        for step in steps:
            engine.manual_seed(self.job.settings.seed, step=step)
            states.append(engine.get_rng_state().tolist())
        rates = engine.tensor([self.rates(step) for step in steps], dtype=engine.float64)
        rows = [rates, engine.tensor(states)]
        if self.average is not None:
            decays = [self.average.decay(step) for step in steps]
            rows.append(engine.tensor(decays, dtype=engine.float64))
        return rows

    def gradients(self, indices: Tensor, state: Tensor) -> Tensor:
        """Compute the batch's gradients; returns its mean loss.

        Micro-batches are weighted by their sizes, or by the weights of their targets in the mean,
        so that they change only rounding. Their gradients are summed along a tree, their losses in
        order.
        """
        job = self.job
        job.optimizer.zero_grad()
        parts = cut(indices, job.settings.micro_batch)
        weights = self._weights(parts, state)

        def backward(part: int) -> PartResult:
            return self._backward(parts[part], state, weights[part] if len(parts) > 1 else None)

        if self.ranks is None:
            engine.set_rng_state(state)
            results = self._sums.add_up(0, len(parts), backward)
        else:
            engine.set_rng_state(_later(state, self.ranks.first_draw(len(parts))))
            results = self.ranks.add_up(len(parts), backward)
        for statistics in chain(*(result.statistics for result in results)):
            statistics.layer.learn(statistics.mean, statistics.var)
        return sum((result.loss for result in results[1:]), results[0].loss)

    def _backward(self, part: Tensor, state: Tensor, weight: Any = None) -> PartResult:
        """Add the gradients of a part, weighted by its share of the batch's mean."""
        job = self.job
        inputs, targets = self.batch(part, state)
        # A whole batch updates the running statistics itself.
        apart = self.ranks is not None or job.settings.micro_batch is not None
        notes: AbstractContextManager[list[BatchStatistics]]
        notes = collect_statistics() if apart else nullcontext([])
        with notes as statistics, precision.forward(job.settings):
            loss = job.loss(job.model(inputs), targets)
        if weight is not None:
            loss = loss * weight
        loss.backward()
        return PartResult(loss.detach(), statistics)

    def _weights(self, parts: Sequence[Tensor], state: Tensor) -> list[Any]:
        """The share of each part in the batch's mean."""
        sizes: list[Any] = [part.shape[0] for part in parts]
        if self.job.total_weight is not None and len(parts) > 1:
            sizes = [self.job.total_weight(self.batch(part, state)[1]) for part in parts]
        total = sum(sizes[1:], sizes[0])
        return [size / total for size in sizes]

    def batch(self, indices: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and targets of these samples, augmented if `augment:` is set."""
        job, split, balanced = self.job, self._split, self._balanced
        with waiting.gathering():
            samples = self.samples(indices)
            if not isinstance(split, Augmented):
                return split.batch(samples)
            epoch = (state[1:2] - 1) // steps_per_epoch(job.settings, split.size)
            state = epoch_state(job.settings.seed, epoch)
            if balanced is None:
                return split.augment(samples, state)
            return split.augment(samples, state, draws=indices, partners=balanced.samples)

    def samples(self, indices: Tensor) -> Tensor:
        """The samples of drawings, in which a sample may come twice in an epoch."""
        return indices if self._balanced is None else indices % self._split.size

    def update(self, decay: Tensor | None = None) -> None:
        """Clip the gradients, take the optimizer's step, and move the average."""
        settings = self.job.settings
        if settings.clip_value is not None:
            before = clip.gradients(self._parameters)
            self.whole_norm = norm_of(before) if before else None
            optim.clip_grad_value_(self._parameters, settings.clip_value)
        grads = clip.gradients(self._parameters) if self.looks else []
        if grads:
            norm, factor = clip.norm_and_factor(grads, settings.clip or 1.0)
            self.norm = norm.reshape(())
            self._require_finite(self.norm)
            if settings.clip is not None:
                clip.scale(grads, factor)
        self.job.optimizer.step()
        if self.average is not None and decay is not None:
            self.average.update(decay)

    def _require_finite(self, figure: Tensor) -> None:
        engine.require_finite(figure)
        if self._reads:
            figure.item()


def _later(state: Tensor, draws: int) -> Tensor:
    """The random state after so many draws."""
    if not draws:
        return state
    with scope.on(None):  # random states stay on the host
        return state + engine.tensor([0, 0, draws])


def saved_buffers(model: nn.Module) -> list[Tensor]:
    """The buffers in a checkpoint: running statistics and whatever else a step may change."""
    buffers = dict(model.named_buffers())
    return [buffers[name] for name in model.state_dict() if name in buffers]
