"""Arithmetic made of other ops: squares, mixtures, products that are added."""

from __future__ import annotations

from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine.composite import function
from gradcli.engine.ops.elementwise.elementwise import absolute, add, clamp, div, ge, mul, sub
from gradcli.engine.ops.index.where import where
from gradcli.engine.sample import away_from, sample, truth, unit, wrong
from gradcli.engine.sample import positive as positive_numbers
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError


@function(samples=[sample((3, 5)), sample((2, 1, 4)), sample(()), sample((0, 3))])
def square(input: Tensor) -> Tensor:
    """The element times itself; of truths 0 or 1, as int64."""
    x = input.long() if input.dtype is dtypes.bool_ else input
    return mul(x, x)


@function(
    shares="view",
    samples=[sample((3, 5)), sample((1,)), sample((0, 3))],
    wrong=[wrong(sample(truth((2,))), "positive: truth values have no sign")],
)
def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    if input.dtype is dtypes.bool_:
        raise DTypeError("positive: truth values have no sign")
    return input


@function(
    samples=[
        sample(away_from((3, 5), 0.5), min=0.5),
        sample(away_from((2, 1, 4), -0.5), max=-0.5),
        sample(unit((0, 3)), min=0.0, max=1.0),
    ]
)
def clip(input: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    """The same as clamp."""
    return clamp(input, min=min, max=max)


@function(
    samples=[
        sample((3, 5), (3, 5), weight=0.3),
        sample((2, 1), (2, 1), weight=0.7),
        sample((2, 3), (2, 3), unit((2, 3))),
        sample((2, 1, 3), (4, 1), unit((3,))),
        sample((0, 3), (0, 3), weight=0.5),
    ]
)
def lerp(input: Tensor, end: Tensor, weight: Tensor | float) -> Tensor:
    """Input + weight * (end - input), reckoned from the nearer of the two."""
    gap = sub(end, input)
    if isinstance(weight, Tensor):
        near, far = add(input, mul(weight, gap)), sub(end, mul(sub(1, weight), gap))
        return where(ge(absolute(weight.detach()), 0.5), far, near)
    return sub(end, mul(gap, 1 - weight)) if abs(weight) >= 0.5 else add(input, gap * weight)


@function(
    samples=[
        sample((3, 5), (3, 5), (3, 5)),
        sample((2, 3), (3,), (2, 1), value=-0.5),
        sample((3,), (2, 1), ()),
        sample((0, 3), (3,), (0, 3), value=2),
    ]
)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """The input plus value * tensor1 * tensor2."""
    return add(input, _times(value, mul(tensor1, tensor2)))


@function(
    samples=[
        sample((3, 5), (3, 5), positive_numbers((3, 5))),
        sample((2, 3), (3,), positive_numbers((2, 1)), value=-0.5),
        sample((3,), (2, 1), positive_numbers(())),
        sample((0, 3), (3,), positive_numbers((0, 3)), value=2),
    ]
)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """The input plus value * tensor1 / tensor2."""
    return add(input, _times(value, div(tensor1, tensor2)))


def _times(value: float, x: Any) -> Any:
    return x if value == 1 else mul(x, value)
