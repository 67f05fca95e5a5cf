"""Find where NaN or infinity arose: repeat the step and check the result of every call."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from gradcli.dataclass import dataclass
from gradcli.engine import observing
from gradcli.engine.origins import Origin, Origins, count_nonfinite, finite
from gradcli.errors import NumericsError
from gradcli.wording import join_words, quantity, verb

if TYPE_CHECKING:
    from gradcli.engine import Tensor, nn
    from gradcli.engine.hooks import RemovableHandle
    from gradcli.train.job import Job, Loss
    from gradcli.train.progress import Figures
    from gradcli.train.step import TrainingStep

OUTSIDE = "the step"  # around model and loss: the batch, and sums of micro-batches
SKIP = "leave such steps out: train.on_nonfinite: skip"
MAX_SAMPLES = 5  # in a message


@dataclass(frozen=True)
class NonfiniteStep:
    """A step whose loss or gradients are not finite; it was not applied.

    Attributes:
        step: the number of the step, from 1.
        indices: the indices of its samples.
    """

    step: int
    indices: Tensor
    figures: Figures


@dataclass(frozen=True)
class Explanation:
    """Why a step is not finite, and whether its batch, or the weights before it, already were."""

    error: NumericsError
    in_data: bool
    in_weights: bool


def explain(job: Job, step: TrainingStep, failure: NonfiniteStep) -> Explanation:
    """The error that names where a step went wrong; its buffers must be restored before."""
    data, weights = _batch(step, failure), _weights(job)
    cause = _find_cause(job, step, failure, data or weights)
    before = [f"{norm:.3g} at step {number}" for number, norm in step.norms.items()]
    notes = [f"gradient norms before: {', '.join(before)}"] if before else []
    in_data, in_weights = (bool(text) and cause.startswith(text) for text in (data, weights))
    notes += ["nothing of this step was applied", *_cures(job, in_data)]
    error = NumericsError(f"{_what(failure)}; {cause}", notes=tuple(notes))
    return Explanation(error, in_data, in_weights)


def _cures(job: Job, in_data: bool) -> list[str]:
    """What may help, without what the job already does."""
    settings, rate = job.settings, job.optimizer.defaults["lr"] / 10
    skip = [] if settings.on_nonfinite == "skip" else [f"or {SKIP}"]
    if in_data:
        return [", ".join(["look at these samples", *skip])]
    ways, words = ["a lower rate"], [f"-s optim.lr={rate:g}"]
    if settings.clip is None:
        ways.append("a clip")
        words.append("-s train.clip=1.0")
    advice = f"go on from the last checkpoint with {' or '.join(ways)}"
    return [f"{advice}: gradcli resume RUN {' '.join(words)}", *skip]


def _what(failure: NonfiniteStep) -> str:
    loss, norm = failure.figures.loss, failure.figures.norm
    if norm is None:
        return f"the loss of step {failure.step} is {loss}"
    return f"the gradient norm of step {failure.step} is {norm}, with a loss of {loss:.4g}"


def _find_cause(job: Job, step: TrainingStep, failure: NonfiniteStep, before: str) -> str:
    """The call in which it began, or what was not finite before the step."""
    origins = _InModel()
    with _telling_layers(job.model, origins), observing.by(origins):
        loss = step.repeat(failure.step, failure.indices, origins.around(job.loss))
    origin = origins.first(backward=True)
    if not finite(loss.array):
        origin = origins.of(loss.array) or origins.first(backward=False)
    elif math.isfinite(step.norm()):
        return _describe_finite(step, loss)
    if origin is not None and not origin.already:
        return f"it began in {_call(origin)}"
    if before:
        return before if origin is None else f"{before}; the first to read it is {_call(origin)}"
    if origin is not None:
        return (
            f"it began in {_call(origin)}; {quantity(origin.already, 'number')} of its inputs "
            f"{verb(origin.already, 'was', 'were')} so before"
        )
    odd = [
        n
        for n, p in job.model.named_parameters()
        if p.grad is not None and not finite(p.grad.array)
    ]
    what = f"gradients that are added up for weight {odd[0]}" if odd else "squares of its gradients"
    return f"the {what} overflow"


def _describe_finite(step: TrainingStep, loss: Tensor) -> str:
    return (
        f"made again it is finite, with a loss of {loss.item():.6g} and a gradient norm of "
        f"{step.norm():.6g}: the step depends on more than its number and its samples"
    )


def _batch(step: TrainingStep, failure: NonfiniteStep) -> str:
    """What of the batch is not finite, and in which samples."""
    batch = step.batch(failure.step, failure.indices)
    for name, tensor in zip(("inputs", "targets"), batch, strict=True):
        if not finite(tensor.array):
            rows = zip(step.samples(failure.indices).tolist(), tensor, strict=True)
            odd = [str(index) for index, row in rows if not finite(row.array)]
            indices = join_words(odd, MAX_SAMPLES)
            return (
                f"it is in the data: the {name} of the batch have {quantity(_of(tensor), 'value')} "
                f"that are not finite, in training samples {indices} (counted from 0)"
            )
    return ""


def _weights(job: Job) -> str:
    """The first weight that was not finite before the step, after an earlier update."""
    for name, parameter in job.model.named_parameters():
        if not finite(parameter.array):
            return f"weight {name} ({_of(parameter)}) was not finite before this step"
    return ""


class _InModel(Origins):
    """Looks at the calls of model and loss."""

    def __init__(self) -> None:
        super().__init__()
        self.enter(OUTSIDE)

    def forward(self, *call: Any) -> None:
        """Check a call, unless it makes the batch, whose values come from outside."""
        if self.layer != OUTSIDE:
            super().forward(*call)

    def around(self, loss: Loss) -> Loss:
        """The loss, whose calls are its own."""

        def of_loss(outputs: Tensor, targets: Tensor) -> Tensor:
            self.enter("the loss")
            result = loss(outputs, targets)
            self.leave()
            return result

        return of_loss


@contextmanager
def _telling_layers(model: nn.Module, origins: Origins) -> Iterator[None]:
    """Within the block, hooks tell `origins` which layer each call belongs to."""
    with ExitStack() as handles:
        for module, title in _titles(model):
            for handle in _hooks(module, title, origins):
                handles.callback(handle.remove)
        yield


def _titles(model: nn.Module) -> Iterator[tuple[nn.Module, str]]:
    """The model and each layer, titled as in the config, or by name if there is no config."""
    yield model, "the model"
    below = [(name, module) for name, module in model.named_modules() if name]
    has_titles = any("layer_title" in vars(module) for _, module in below)
    for name, module in below:
        if not has_titles:
            yield module, f"layer {name} {type(module).__name__}"
        elif "layer_title" in vars(module):
            yield module, f"layer {module.layer_title}"


def _hooks(module: nn.Module, title: str, origins: Origins) -> Iterator[RemovableHandle]:
    """Around the module's forward."""
    yield module.register_forward_pre_hook(lambda *_: origins.enter(title))
    yield module.register_forward_hook(lambda *_: origins.leave())


def _call(origin: Origin) -> str:
    way = "backward" if origin.backward else "forward"
    return (
        f"{origin.layer}, op {origin.op}, {way}: {origin.count} of "
        f"{quantity(origin.size, 'value')} {verb(origin.count)} not finite, the largest |input| is "
        f"{origin.largest:.4g}"
    )


def _of(tensor: Tensor) -> str:
    return f"{count_nonfinite(tensor.array)} of {tensor.numel()}"
