"""One training step: a function of its number and its samples' indices, nothing else.

All that changes from step to step comes as tensors, and nothing is read back inside, so that the
step is captured once and many steps are replayed without Python in between.
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
from gradcli.engine.device import place
from gradcli.engine.distributed import ALONE
from gradcli.engine.nn.batch_norm import BatchStatistics, collect_statistics
from gradcli.engine.optim import clip
from gradcli.train import precision
from gradcli.train.average import Average
from gradcli.train.gradient_norm import GradientNorm, norm_of
from gradcli.train.job import Loss, steps_per_epoch
from gradcli.train.parts import Gradients, Outline, PartResult, Shares, cut
from gradcli.train.progress import Progress

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

    `note` is told how gradients travel between GPUs, and why steps run eagerly, where they do.

    The parts of a batch are shared by the ranks of `group`: all that this process has joined.

    Attributes:
        norms: of the gradients before they are clipped, at the latest steps where they are known.
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
        self._one = OneStep(job, split, group)
        if group.size > 1:
            from gradcli.engine.distributed.gpus import way  # whoever is alone does not wait for it

            words = way(group, next(job.model.parameters()).device).words
            if words:
                note(words)
        self.captured = capture(
            self._one,
            on_refusal=lambda why: note(f"the steps run eagerly, one by one: {why}"),
            eager=not job.settings.capture,
        )
        self.norms: dict[int, float] = {}
        self._norm = GradientNorm(job.model.parameters(), capture)

    @property
    def average(self) -> Average | None:
        """The average of the weights, where there is one."""
        return self._one.average

    @property
    def looks(self) -> bool:
        """Whether each step looks at the norm of its gradients."""
        return self._one.looks

    def rates(self, step: int) -> list[float]:
        """The learning rate of each group at a step, from 1."""
        return self._one.rates(step)

    def run(self, first: int, indices: Tensor) -> Progress:
        """The steps from number `first` (from 1) on, one for each row of indices (steps, batch)."""
        inputs = self._one.inputs(range(first, first + indices.shape[0]))
        result = self.captured.steps(indices, *inputs)
        columns = iter([] if result.outputs is None else [one.tolist() for one in result.outputs])
        losses: list[float] = next(columns, [])
        norms: list[float] = next(columns, []) if self.looks else []
        before = next(columns, norms)
        if result.error is not None and len(losses) == result.done and self._one.loss is not None:
            losses.append(self._one.loss.item())  # an eager step that was refused gave nothing back
            norms += [] if self._one.norm is None else [self._one.norm.item()]
        self._keep(dict(enumerate(before[: result.done], first)))
        return Progress(losses, norms, result.done, result.error)

    def _keep(self, norms: Mapping[int, float]) -> None:
        self.norms = dict([*self.norms.items(), *norms.items()][-NORMS:])

    @property
    def waited(self) -> float:
        """Seconds for which the steps so far waited for their samples."""
        return waiting.total() + sum(one.sampling_seconds for one in self.captured.programs)

    def norm_at(self, step: int) -> float:
        """That of the gradients of the latest step, before they were clipped in any way."""
        if step not in self.norms:
            self._keep({step: self.norm()})
        return self.norms[step]

    def norm(self) -> float:
        """That of the gradients as they are."""
        return self._norm(lambda: self.captured.programs)

    def again(self, step: int, indices: Tensor, loss: Loss) -> Tensor:
        """The loss of a step (from 1), and its gradients, by eager calls; nothing is updated.

        `loss` stands in for the job's, to see when it is called.
        """
        engine.manual_seed(self._job.settings.seed, step=step)
        one = copy(self._one)
        one.job = replace(self._job, loss=loss)
        one.ranks = None  # each rank makes all parts, and sees where it began
        with precision.products(self._job.settings):
            result = one.gradients(indices, engine.get_rng_state())
        self.put_back()
        return result

    def put_back(self) -> None:
        """The model's buffers as they were before the latest step that was begun."""
        self._one.put_back()

    def samples(self, indices: Tensor) -> Tensor:
        """The samples that the indices of a step stand for."""
        return self._one.samples(indices)

    def batch(self, step: int, indices: Tensor) -> tuple[Tensor, Tensor]:
        """The samples as a step sees them."""
        engine.manual_seed(self._job.settings.seed, step=step)
        return self._one.batch(indices, engine.get_rng_state())


class OneStep:
    """What is captured."""

    def __init__(self, job: Job, split: Split, group: Group = ALONE) -> None:
        self.job = job
        self._split = split
        self._parameters = list(job.model.parameters())
        self._sums = Gradients(self._parameters)
        self._rates = [float(group["lr"]) for group in job.optimizer.param_groups]
        ema = job.settings.ema
        self.ranks: Shares | None = None
        self.average = None if ema is None else Average(job.model, ema)
        self.loss: Tensor | None = None  # of the latest step that Python made
        self.norm: Tensor | None = None
        self.whole_norm: Tensor | None = None  # before its numbers were clipped, where they are
        self.buffers = saved_buffers(job.model)
        self.before = [buffer.clone() for buffer in self.buffers]
        skips = job.settings.on_nonfinite == "skip"
        self.looks = skips or job.settings.clip is not None
        # A GPU's kernels go on behind what they refuse, until somebody reads.
        self._reads = skips and self._parameters[0].device != "cpu"
        self._balanced: Balanced | None = None
        if job.settings.sampler is not None:
            from gradcli.train.balanced import Balanced  # few ask for it

            self._balanced = Balanced.of(split)
        if group.size > 1:
            self.ranks = Shares(self._outline(), group, job.settings.reduce)

    def _outline(self) -> Outline:
        """What each part does, seen by making one of the first samples."""
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
        """One step: its loss, and the norm of its gradients where it needs that.

        Behind them is the norm before `clip_value` was applied, where it is: nobody sees it later.
        If one of them is not finite, it ends before the update. `decay` is that of the average,
        where there is one.
        """
        self.job.optimizer.take_rates(rates)
        for before, buffer in zip(self.before, self.buffers, strict=True):
            copy_into(before.array, buffer.array)
        self.norm = self.whole_norm = None
        with precision.products(self.job.settings):
            self.loss = loss = self.gradients(indices, state)
            self._require_finite(loss)
            self.update(decay)
        return tuple(one for one in (loss, self.norm, self.whole_norm) if one is not None)

    def rates(self, step: int) -> list[float]:
        """The learning rate of each group at a step, from 1."""
        factor = self.job.schedule.factor(step - 1)
        return [rate * factor for rate in self._rates]

    def inputs(self, steps: Sequence[int]) -> list[Tensor]:
        """What a step takes beside its indices, a row for each of these steps, from 1."""
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
        """The batch's mean loss, with its gradients in the parameters.

        A batch cut into micro-batches weighs each by its size, or by what its targets count in
        the mean, so that the cut changes nothing but rounding. Their gradients are added up along
        a tree, their losses in order.
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
        for statistics in chain(*(one.statistics for one in results)):
            statistics.layer.learn(statistics.mean, statistics.var)
        return sum((one.loss for one in results[1:]), results[0].loss)

    def _backward(self, part: Tensor, state: Tensor, weight: Any = None) -> PartResult:
        """Add the gradients of a part, of which the batch's mean has a share."""
        job = self.job
        inputs, targets = self.batch(part, state)
        # A batch that is not cut moves the running statistics itself.
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
        """How much of the batch's mean each part is."""
        sizes: list[Any] = [part.shape[0] for part in parts]
        if self.job.mass is not None and len(parts) > 1:
            sizes = [self.job.mass(self.batch(part, state)[1]) for part in parts]
        total = sum(sizes[1:], sizes[0])
        return [size / total for size in sizes]

    def batch(self, indices: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and targets of these samples, changed by `augment:` where there is any."""
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
        """The samples of drawings, of which one may come again in an epoch."""
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
    """The state of random numbers so many draws on."""
    if not draws:
        return state
    with place.on(None):  # whatever computes: the host keeps up random states
        return state + engine.tensor([0, 0, draws])


def saved_buffers(model: nn.Module) -> list[Tensor]:
    """The buffers that a checkpoint has: running statistics and whatever else a step may change."""
    buffers = dict(model.named_buffers())
    return [buffers[name] for name in model.state_dict() if name in buffers]
