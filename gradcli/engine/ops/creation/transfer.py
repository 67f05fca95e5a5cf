"""Tensors moved between devices."""

from __future__ import annotations

from gradcli.engine.array import Array
from gradcli.engine.device.context import device_named
from gradcli.engine.op import op
from gradcli.engine.sample import SHAPES, sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.engine.transfer import to_device


@op(
    shares="either",
    method=False,
    saves="x",
    samples=[sample(shape, device="cpu") for shape in SHAPES],
    wrong=[wrong(sample((2,), device="abacus"), "transfer: no device 'abacus'")],
)
def transfer(x: Array, *, device: str) -> Array:
    """The same elements on another device ("cpu", "cuda", "cuda:1", "metal", "meta")."""
    return to_device(x, device_named(device, "transfer"))


@transfer.gradient
def transfer_gradient(grad: Array, *, x: Array) -> Array:
    """The gradient, moved back."""
    return to_device(grad, x.storage.device)


@transfer.double_backward
def transfer_double_backward(grad: Tensor, *, x: Tensor) -> Tensor:
    """The gradient, moved back."""
    return transfer(grad, device=x.device)
