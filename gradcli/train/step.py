"""One training step: a function of the step's number and its samples' indices, nothing else.

Nothing in here reads a value back, so that the calls can be recorded once and replayed: the
learning rate and the random key are set from outside in `prepare`, the loss leaves as a tensor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.engine import optim

if TYPE_CHECKING:
    from gradcli.data import Split
    from gradcli.engine import Tensor
    from gradcli.train.job import Job


@dataclass(frozen=True)
class StepBlock:
    """All that a step takes beside the indices: its number, from 0, and the rate's multiplier."""

    step: int
    factor: float


class TrainingStep:
    """The step of one job; `prepare`, then `gradients`, then `update`."""

    def __init__(self, job: Job, split: Split) -> None:
        self._job = job
        self._split = split
        self._rates = [float(group["lr"]) for group in job.optimizer.param_groups]
        self._parameters = list(job.model.parameters())

    def prepare(self, block: StepBlock) -> float:
        """Set the random key and the learning rate; gives the rate of the first group."""
        engine.manual_seed(self._job.settings.seed, step=block.step)
        for group, rate in zip(self._job.optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * block.factor
        return float(self._job.optimizer.param_groups[0]["lr"])

    def gradients(self, indices: Tensor) -> Tensor:
        """The batch's mean loss, with its gradients in the parameters.

        A batch cut into micro-batches weighs each by its size, so that the cut changes nothing
        but rounding.
        """
        job = self._job
        job.optimizer.zero_grad()
        size = indices.shape[0]
        portion = job.settings.micro_batch or size
        total: Tensor | None = None
        for begin in range(0, size, portion):
            part = indices[begin : min(begin + portion, size)]
            inputs, targets = self._split.batch(part)
            loss = job.loss(job.model(inputs), targets)
            if portion < size:
                loss = loss * (part.shape[0] / size)
            loss.backward()
            total = loss.detach() if total is None else total + loss.detach()
        assert total is not None, "a step has at least one sample"
        return total

    def update(self) -> None:
        """Clip the gradients and take the optimizer's step."""
        if self._job.settings.clip is not None:
            optim.clip_grad_norm_(self._parameters, self._job.settings.clip)
        self._job.optimizer.step()


def epoch_order(seed: int, epoch: int, samples: int) -> Tensor:
    """The order of an epoch: a pure function of seed and epoch."""
    generator = engine.Generator(seed, purpose="shuffle", step=epoch)
    order: Tensor = engine.randperm(samples, generator=generator)
    return order
