"""Sums, differences, products and quotients, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine.array import Array
from gradcli.engine.composite import function
from gradcli.engine.op import op
from gradcli.engine.ops.elementwise.family import (
    DIVISION_SAMPLES,
    NONZERO_SAMPLES,
    UNARY_SAMPLES,
    BinaryOp,
    binary,
    declare_sign_slope,
    map_binary,
    map_unary,
    step,
    unary,
)
from gradcli.engine.ops.index.where import where
from gradcli.engine.sample import positive as positive_numbers
from gradcli.engine.sample import sample, truth, unit, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError


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
        return where(absolute(weight.detach()) >= 0.5, far, near)
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


def _times(value: float, x: object) -> Any:
    return x if value == 1 else mul(x, value)


sign = step("sign", "-1, 0 or 1.", samples=NONZERO_SAMPLES)


@op(samples=UNARY_SAMPLES)
def neg(x: Array) -> Array:
    """-x."""
    if x.dtype is dtypes.bool_:
        raise DTypeError("neg: truth values have no negative; use x == False to turn them round")
    return map_unary("neg", x)


@neg.gradient
def neg_gradient(grad: Array) -> Array:
    """-grad."""
    return map_unary("neg", grad)


@neg.gradient_graph
def neg_gradient_graph(grad: Tensor) -> Tensor:
    """-grad."""
    return -grad


@op(name="abs", saves="x", samples=NONZERO_SAMPLES)
def absolute(x: Array) -> Array:
    """|x|; the gradient at 0 is 0."""
    return map_unary("abs", x)


@absolute.gradient
def absolute_gradient(grad: Array, *, x: Array) -> Array:
    """The gradient times sign(x)."""
    return map_binary("mul", grad, map_unary("sign", x))


declare_sign_slope(absolute)


def _through(grad: Array) -> Array:
    return grad


def _negated(grad: Array) -> Array:
    return map_unary("neg", grad)


def _times_other(grad: Array, *, input: Array, other: Array) -> Array:
    del input
    return map_binary("mul", grad, other)


def _times_input(grad: Array, *, input: Array, other: Array) -> Array:
    del other
    return map_binary("mul", grad, input)


add = binary(
    "add",
    "input + other.",
    (_through, _through),
    text="1; 1",
)


class SubOp(BinaryOp):
    """sub, which truth values have not, as in torch."""

    def _bind(
        self, args: Sequence[Any], named: dict[str, Any]
    ) -> tuple[list[Tensor | None], dict[str, Any]]:
        for value in (*args, *named.values()):
            if isinstance(value, bool) or (
                isinstance(value, Tensor) and value.dtype is dtypes.bool_
            ):
                raise DTypeError("sub: truth values have no difference; use a != b")
        return super()._bind(args, named)


sub = binary(
    "sub",
    "input - other.",
    (_through, _negated),
    text="1; -1",
    kind=SubOp,
)
mul = binary(
    "mul",
    "input * other.",
    (_times_other, _times_input),
    saves=("input", "other"),
    text="b; a",
)
div = binary(
    "div",
    "input / other; whole numbers give floats.",
    samples=DIVISION_SAMPLES,
    floats=True,
)
reciprocal = unary("reciprocal", "1 / x.", samples=NONZERO_SAMPLES)
