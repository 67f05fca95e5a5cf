"""`--compare torch`: the same training step in PyTorch, eager and compiled, measured in turns.

PyTorch is handed ready batches, while our step gathers its own from the data set. It has as many
threads as we have, and a turn begins after a pause in which the other side's threads fall asleep.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from gradcli.bench import torch_model
from gradcli.engine.device import cpu
from gradcli.train.order import order_of

if TYPE_CHECKING:
    from gradcli.bench.timing import Run
    from gradcli.bench.torch_model import State
    from gradcli.train.job import Job

RIVAL = "torch"
BATCHES = 8  # made before the clock starts, used in rotation


class Rival:
    """One way of PyTorch to run the job's step.

    Args:
        device: as PyTorch calls it.
        half: forward and loss in bfloat16 where PyTorch thinks it safe, weights in float32.
    """

    fallback_reason = ""  # as Steps has it

    def __init__(
        self,
        torch: Any,
        job: Job,
        start: State,
        *,
        compiled: bool,
        device: str = "cpu",
        half: bool = False,
    ) -> None:
        self._torch = torch
        self._model = torch_model.model(torch, job, start).to(device)
        # Elsewhere it is faster so; on the CPU the default is.
        more = {} if device == "cpu" else {"fused": True}
        self._optimizer = torch_model.optimizer(torch, job, self._model, **more)
        self._clip = job.settings.clip
        self._mixed: Callable[[], Any] = (
            partial(torch.autocast, device, dtype=torch.bfloat16) if half else nullcontext
        )
        self._batches = itertools.cycle(list(_batches(torch, job, device)))
        self._loss = self._forward(torch_model.loss(torch, job))
        if compiled:
            self._loss = torch.compile(self._loss)

    def _forward(self, loss: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        return lambda inputs, targets: loss(self._model(inputs), targets)

    def run(self, count: int) -> float:
        """So many steps; the last loss is read, as our steps read theirs when all are done."""
        loss = None
        for _ in range(count):
            loss = self._step()
        return 0.0 if loss is None else float(loss.item())

    def _step(self) -> Any:
        """Forward, backward, clip, update."""
        self._optimizer.zero_grad()
        total: Any = None
        for inputs, targets, weight in next(self._batches):
            with self._mixed():
                loss = self._loss(inputs, targets)
            if weight != 1:
                loss = loss * weight
            loss.backward()
            total = loss.detach() if total is None else total + loss.detach()
        if self._clip is not None:
            self._torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._clip)
        self._optimizer.step()
        return total


def _batches(torch: Any, job: Job, device: str) -> Iterator[list[tuple[Any, Any, float]]]:
    """The first batches of the first epoch, each cut into its micro-batches with their weights."""
    split = job.dataset.splits["train"]
    size = min(job.settings.batch, split.size)
    portion = job.settings.micro_batch or size
    order = order_of(job.settings.seed, 0, split.size)
    for i in range(min(BATCHES, split.size // size)):
        parts = []
        for begin in range(i * size, (i + 1) * size, portion):
            part = order[begin : min(begin + portion, (i + 1) * size)]
            inputs, targets = split.batch(part)
            weight = part.shape[0] / size
            tensors = (
                torch_model.as_torch(torch, tensor).to(device) for tensor in (inputs, targets)
            )
            parts.append((*tensors, weight))
        yield parts


class Rivals:
    """PyTorch's contenders, warmed up; where it cannot compile, the reason why."""

    pause = 0.005  # seconds before a turn

    def __init__(self, job: Job, start: State, device: str = "cpu") -> None:
        torch = torch_model.imported()
        there = torch_model.device(torch, device)
        torch.set_num_threads(cpu.threads())
        torch.manual_seed(job.settings.seed)
        self._version = str(torch.__version__)
        half = job.settings.precision == "bf16"
        rounds = job.settings.precision == "tf32"
        torch.set_float32_matmul_precision("high" if rounds else "highest")
        eager = Rival(torch, job, start, compiled=False, device=there, half=half)
        self._first_loss = eager.run(1)
        self.contenders: dict[str, Run] = {f"{RIVAL} eager": eager.run}
        self._compile_failure = ""
        try:
            compiled = Rival(torch, job, start, compiled=True, device=there, half=half)
            compiled.run(1)
        except Exception as error:  # a compiler that is missing or fails, in whatever way
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            self._compile_failure = f"torch.compile fails here: {reason}"
        else:
            self.contenders[f"{RIVAL} compiled"] = compiled.run

    def as_json(self, first_loss: float, ms: dict[str, float]) -> dict[str, Any]:
        """How many times as fast each of our ways is as the faster one of PyTorch's.

        Args:
            first_loss: ours, of the same samples and weights as theirs.
            ms: the medians by contender.
        """
        fastest = min((name for name in ms if name.startswith(RIVAL)), key=ms.__getitem__)
        ratios = {
            name: round(ms[fastest] / value, 3)
            for name, value in ms.items()
            if not name.startswith(RIVAL)
        }
        return {
            "version": self._version,
            "fastest": fastest,
            "ratios": ratios,
            "first_loss": {"gradcli": first_loss, "torch": self._first_loss},
            "why_not_compiled": self._compile_failure,
        }
