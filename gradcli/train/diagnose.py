"""Where NaN or infinity came from: the first layer, by a second look at the same batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.engine import nn
from gradcli.errors import NumericsError
from gradcli.train.state import count_nonfinite, finite, weights

if TYPE_CHECKING:
    from gradcli.engine import Tensor
    from gradcli.train.job import Job


def nonfinite_loss(job: Job, batch: tuple[Tensor, Tensor], step: int, loss: float) -> NumericsError:
    """The error for a non-finite loss of step `step` (from 1), naming the first bad place."""
    return NumericsError(
        f"the loss of step {step} is {loss}; first non-finite: {_first(job, *batch)}",
        notes=(
            "the update of this step was not applied; the last checkpoint is finite",
            "look at the data of this batch, or go on from there with a lower rate or a clip: "
            "gradcli resume RUN -s optim.lr=1e-4 -s train.clip=1.0",
        ),
    )


def _first(job: Job, inputs: Tensor, targets: Tensor) -> str:
    for name, tensor in (("the inputs", inputs), ("the targets", targets)):
        if not finite(tensor):
            return f"{name} of the batch ({count_nonfinite(tensor)} of {tensor.numel()})"
    for name, tensor in weights(job.model).items():
        if not finite(tensor):
            return f"weight {name} ({count_nonfinite(tensor)} of {tensor.numel()})"
    return _first_layer(job, inputs) or _first_gradient(job.model) or "the loss itself"


def _first_layer(job: Job, value: Tensor) -> str | None:
    with engine.no_grad():
        for name, layer in _layers(job.model):
            value = layer(value)
            if not finite(value):
                bad = f"{count_nonfinite(value)} of {value.numel()}"
                return f"the output of layer {name} ({type(layer).__name__}; {bad})"
    return None


def _layers(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The layers in the order they run: those of a Sequential, else the model whole."""
    if isinstance(model, nn.Sequential):
        yield from ((str(number), layer) for number, layer in enumerate(model))
    else:
        yield "0", model


def _first_gradient(model: nn.Module) -> str | None:
    for name, parameter in model.named_parameters():
        if parameter.grad is not None and not finite(parameter.grad):
            return f"the gradient of {name}"
    return None
