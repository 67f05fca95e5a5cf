"""Sums, differences, products and quotients, and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine.argument import too_large
from gradcli.engine.array import Array, result, unbroadcast
from gradcli.engine.composite import function
from gradcli.engine.kind import Operand
from gradcli.engine.op import declare_op, op
from gradcli.engine.ops.along import floats, match
from gradcli.engine.ops.elementwise.division import (
    ROUNDED_SAMPLES,
    ROUNDED_WRONG,
    DivOp,
    quotient,
)
from gradcli.engine.ops.elementwise.family import (
    BINARY_SAMPLES,
    DIVISION_SAMPLES,
    NONZERO_SAMPLES,
    UNARY_SAMPLES,
    BinaryOp,
    UnaryOp,
    binary,
    declare_sign_slope,
    map_binary,
    map_unary,
    piecewise_constant,
    unary,
)
from gradcli.engine.ops.index.where import where
from gradcli.engine.sample import index, sample, truth, unit, wrong
from gradcli.engine.sample import positive as positive_numbers
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError


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
        sample((3, 5), positive_numbers((3, 5))),
        sample((2, 1), other=0.5),
        sample((0,), (1,)),
    ]
)
def true_divide(input: Tensor, other: Operand) -> Tensor:
    """The same as div without a rounding mode."""
    return div(input, other)


@function(
    method=False,
    samples=[sample((3, 5), (3, 1)), sample((2, 4), other=1.5, alpha=-0.5), sample((0,), (1,))],
)
def rsub(input: Tensor, other: Operand, *, alpha: float = 1) -> Tensor:
    """The elements of other - alpha * input."""
    return sub(other, input, alpha=alpha)


@function(
    samples=[
        sample((3, 5), (3, 5), weight=0.3),
        sample((2, 1), (2, 1), weight=0.7),
        sample((2, 3), (2, 3), unit((2, 3))),
        sample((2, 1, 3), (4, 1), unit((3,))),
    ]
)
def lerp(input: Tensor, end: Tensor, weight: Tensor | float) -> Tensor:
    """Input + weight * (end - input), reckoned from the nearer of the two."""
    if isinstance(weight, Tensor):
        gap = sub(end, input)
        near, far = add(input, mul(weight, gap)), sub(end, mul(sub(1, weight), gap))
        return where(absolute(weight.detach()) >= 0.5, far, near)
    if input.dtype is end.dtype and input.is_floating_point():
        return lerp_number(input, end, weight)
    gap = sub(end, input)
    return sub(end, mul(gap, 1 - weight)) if abs(weight) >= 0.5 else add(input, gap * weight)


@op(
    method=False,
    double_backward="linear",
    samples=[
        sample((3, 5), (3, 5), weight=0.3),
        sample((2, 1), (1, 3), weight=0.7),
        sample((2, 3), (3,), weight=-1.5),
        sample((), (2,), weight=0.5),
        sample((0, 3), (1, 3), weight=0.25),
    ],
)
def lerp_number(input: Array, end: Array, *, weight: float) -> Array:
    """Input + weight * (end - input) for a number, reckoned from the nearer of the two."""
    match("lerp_number", floats("lerp_number", input), end=end)
    return map_binary("lerp", input, end, options=(weight, 1 - weight))


@lerp_number.gradient
def lerp_number_gradient(
    grad: Array, *, weight: float, needs: tuple[bool, ...], shapes: tuple[Shape, ...]
) -> tuple[Array | None, ...]:
    """1 - weight to the input, and weight to the end: the slopes look at nothing else."""
    about: Any = {"shape": grad.shape, "dtype": grad.dtype, "options": (weight, 1 - weight)}
    return tuple(
        unbroadcast(result(row, grad, grad, grad, grad, **about), shape) if need else None
        for row, shape, need in zip(
            ("lerp_backward_a", "lerp_backward_b"), shapes, needs, strict=True
        )
    )


# Shapes of three, and what the product or quotient of two is multiplied by.
_THREE = [
    ((3, 5), (3, 5), (3, 5), 1),
    ((2, 3), (3,), (2, 1), -0.5),
    ((3,), (2, 1), (), 1),
    ((0, 3), (3,), (0, 3), 2),
]


@function(samples=[sample(a, b, c, value=value) for a, b, c, value in _THREE])
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """The input plus value * tensor1 * tensor2."""
    return add(input, _times(value, mul(tensor1, tensor2)))


@function(samples=[sample(a, b, positive_numbers(c), value=value) for a, b, c, value in _THREE])
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """The input plus value * tensor1 / tensor2."""
    return add(input, _times(value, div(tensor1, tensor2)))


def _times(value: float, x: object) -> Any:
    return x if value == 1 else mul(x, value)


sign = piecewise_constant("sign", "-1, 0 or 1.", samples=NONZERO_SAMPLES)


def _neg(x: Array) -> Array:
    """-x."""
    if x.dtype is dtypes.bool_:
        raise DTypeError("neg: truth values have no negative; use x == False to turn them round")
    return map_unary("neg", x)


neg = declare_op(UnaryOp(_neg, name="neg", samples=UNARY_SAMPLES))


@neg.gradient
def neg_gradient(grad: Array) -> Array:
    """-grad."""
    return map_unary("neg", grad)


@neg.double_backward
def neg_double_backward(grad: Tensor) -> Tensor:
    """-grad."""
    return -grad


def _absolute(x: Array) -> Array:
    """|x|; the gradient at 0 is 0."""
    return map_unary("abs", x)


absolute = declare_op(UnaryOp(_absolute, name="abs", saves="x", samples=NONZERO_SAMPLES))


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


class ScaledOp(BinaryOp):
    """Takes `alpha`, by which the second operand is multiplied first."""

    def _bind_unlike(
        self, args: Sequence[Any], keywords: dict[str, Any]
    ) -> tuple[list[Tensor | None], dict[str, Any]]:
        alpha = 1.0
        if "alpha" in keywords:
            alpha = self.kinds["alpha"].convert_argument(self.name, "alpha", keywords.pop("alpha"))
        inputs, options = super()._bind_unlike(args, keywords)
        if alpha != 1:
            inputs[1] = self._times(alpha, inputs[1])
        return inputs, options

    def _times(self, factor: float, other: Tensor | None) -> Tensor:
        assert other is not None
        if other.dtype.kind == "bool" or (isinstance(factor, float) and other.dtype.kind == "int"):
            accepted = "1 beside truth values" if other.dtype.kind == "bool" else "a whole number"
            raise DTypeError(f"{self.name}: alpha must be {accepted}, got {factor!r}; use floats")
        try:
            return mul(other, factor)
        except (OverflowError, OptionError):
            raise too_large(self.name, {"alpha": factor}) from None


def _sum(input: Array, other: Array, *, alpha: float = 1) -> Array:
    del alpha  # ScaledOp has applied it
    return map_binary("add", input, other)


def _difference(input: Array, other: Array, *, alpha: float = 1) -> Array:
    del alpha
    if input.dtype is dtypes.bool_:
        raise _no_difference()
    return map_binary("sub", input, other)


_SCALED = (
    *BINARY_SAMPLES,
    sample((3, 5), (3, 1), alpha=-0.5),
    sample(index((2, 1), 5), index((3,), 4), alpha=3),
)
_NOT_SCALED = (
    wrong(sample(index((2,), 3), index((2,), 3), alpha=0.5), "alpha must be a whole number"),
)
add = binary(
    "add",
    "input + other, which is multiplied by alpha first.",
    (_through, _through),
    text="1; 1",
    samples=_SCALED,
    wrong=(
        *_NOT_SCALED,
        wrong(sample(truth((2,)), truth((2,)), alpha=2), "alpha must be 1 beside truth values"),
    ),
    kind=ScaledOp,
    forward=_sum,
)


class SubOp(ScaledOp):
    """sub, which truth values have not, as in torch."""

    def _bind_unlike(
        self, args: Sequence[Any], keywords: dict[str, Any]
    ) -> tuple[list[Tensor | None], dict[str, Any]]:
        bound = super()._bind_unlike(args, keywords)
        for value in (*args, *keywords.values()):
            if isinstance(value, bool) or (
                isinstance(value, Tensor) and value.dtype is dtypes.bool_
            ):
                raise _no_difference()
        return bound


def _no_difference() -> DTypeError:
    return DTypeError("sub: truth values have no difference; use a != b")


sub = binary(
    "sub",
    "input - other, which is multiplied by alpha first.",
    (_through, _negated),
    text="1; -1",
    samples=_SCALED,
    wrong=_NOT_SCALED,
    kind=SubOp,
    forward=_difference,
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
    "input / other; whole numbers give floats, unless the quotient is rounded to a whole one.",
    samples=(*DIVISION_SAMPLES, *ROUNDED_SAMPLES),
    wrong=ROUNDED_WRONG,
    floats=True,
    kind=DivOp,
    forward=quotient,
)
reciprocal = unary("reciprocal", "1 / x.", samples=NONZERO_SAMPLES)
