"""Arithmetic made of other ops: squares, mixtures, products that are added."""

from __future__ import annotations

from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine.op import function
from gradcli.engine.ops.elementwise import absolute, add, clamp, div, ge, mul, sub
from gradcli.engine.ops.index import where
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError


@function()
def square(input: Tensor) -> Tensor:
    """The element times itself."""
    y: Tensor = mul(input, input)
    return y


@function()
def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    if input.dtype is dtypes.bool_:
        raise DTypeError("positive: truth values have no sign")
    return input


@function()
def clip(input: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    """The same as clamp."""
    y: Tensor = clamp(input, min=min, max=max)
    return y


@function()
def lerp(input: Tensor, end: Tensor, weight: Tensor | float) -> Tensor:
    """Input + weight * (end - input), reckoned from the nearer of the two."""
    gap: Tensor = sub(end, input)
    if isinstance(weight, Tensor):
        near, far = add(input, mul(weight, gap)), sub(end, mul(sub(1, weight), gap))
        mixed: Tensor = where(ge(absolute(weight.detach()), 0.5), far, near)
        return mixed
    y: Tensor = sub(end, mul(gap, 1 - weight)) if abs(weight) >= 0.5 else add(input, gap * weight)
    return y


@function()
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """The input plus value * tensor1 * tensor2."""
    y: Tensor = add(input, _times(value, mul(tensor1, tensor2)))
    return y


@function()
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """The input plus value * tensor1 / tensor2."""
    y: Tensor = add(input, _times(value, div(tensor1, tensor2)))
    return y


def _times(value: float, x: Any) -> Any:
    return x if value == 1 else mul(x, value)
