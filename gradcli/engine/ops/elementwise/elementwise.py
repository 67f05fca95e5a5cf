"""Elementwise ops. Their maths stands in csrc/scalar_ops.h, one row each."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isnan
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine.array import Array, empty, run, scalar
from gradcli.engine.op import op
from gradcli.engine.ops.family import (
    BinaryOp,
    Derivative,
    Slope,
    as_float,
    binary,
    comparison,
    declare_derivative,
    map_binary,
    map_slope,
    map_unary,
    pick,
    step,
    unary,
)
from gradcli.engine.sample import away_from, distinct, positive, sample, unit, wrong
from gradcli.engine.table import OPS
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError

_SHAPES = ((3, 5), (2, 1, 4), (), (0, 3))
_POSITIVE = tuple(sample(positive(shape)) for shape in _SHAPES)
_NO_ZERO = tuple(sample(away_from(shape)) for shape in _SHAPES)
_BETWEEN = tuple(sample(unit(shape)) for shape in _SHAPES)

exp = unary("exp", "e to the power x.", lambda y: y)
log = unary("log", "Natural logarithm of x.", lambda x: 1 / x, samples=_POSITIVE)
sqrt = unary("sqrt", "Square root of x.", lambda y: 0.5 / y, samples=_POSITIVE)
rsqrt = unary(
    "rsqrt", "1 over the square root of x.", lambda y: -0.5 * y * y * y, samples=_POSITIVE
)
sin = unary("sin", "Sine of x, in radians.", lambda x: x.cos())
cos = unary("cos", "Cosine of x, in radians.", lambda x: -x.sin())
tanh = unary("tanh", "Hyperbolic tangent of x.", lambda y: 1 - y * y)
sigmoid = unary(
    "sigmoid", "1 / (1 + exp(-x)), without overflow on either side.", lambda y: y * (1 - y)
)
relu = unary(
    "relu",
    "x where it is positive, otherwise 0.",
    lambda y: y.detach().sign(),
    samples=_NO_ZERO,
    whole="maximum",
)

floor = step("floor", "The largest whole number not above x.", samples=_BETWEEN)
ceil = step("ceil", "The smallest whole number not below x.", samples=_BETWEEN)
trunc = step("trunc", "The whole number next to x towards 0.", samples=_BETWEEN)
sign = step("sign", "-1, 0 or 1.", samples=_NO_ZERO)


@op(samples=[sample(shape) for shape in _SHAPES])
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


@op(name="abs", saves="x", samples=_NO_ZERO)
def absolute(x: Array) -> Array:
    """|x|; the gradient at 0 is 0."""
    return map_unary("abs", x)


@absolute.gradient
def absolute_gradient(grad: Array, *, x: Array) -> Array:
    """The gradient times sign(x)."""
    return map_binary("mul", grad, map_unary("sign", x))


declare_derivative(absolute, lambda x: x.detach().sign())


@op(
    saves="x",
    samples=[
        sample(away_from((3, 5), 0.5), min=0.5),
        sample(away_from((4, 1), -0.5), max=-0.5),
        sample((0, 3), max=0.5),
        sample(away_from((2, 3), 0.5), min=-9.0, max=0.5),
    ],
    wrong=[wrong(sample((2,)), "clamp: at least one of min and max")],
)
def clamp(x: Array, *, min: float | None = None, max: float | None = None) -> Array:
    """The element held between min and max, max where min is more; NaN stays NaN."""
    limits = _limits(min, max)
    if x.dtype.is_floating_point or float in (type(min), type(max)):
        return map_unary("clamp", as_float(x), limits)
    for kernel, limit in (("maximum", min), ("minimum", max)):
        x = x if limit is None else map_binary(kernel, x, scalar(limit, x.dtype))
    return x


@clamp.gradient
def clamp_gradient(grad: Array, *, x: Array, min: float | None, max: float | None) -> Array:
    """1 inside, 0 outside."""
    return map_slope("clamp", x, grad, _limits(min, max))


def _inside(x: Tensor, min: float | None, max: float | None) -> Tensor:
    low, high = _limits(min, max)
    x = x.detach()
    return 1 - ((x < low).to(x.dtype) + (x > high).to(x.dtype))


declare_derivative(clamp, _inside)


def _limits(low: float | None, high: float | None) -> tuple[float, float]:
    if low is None and high is None:
        raise OptionError("clamp: at least one of min and max is needed")
    for limit in (low, high):
        if limit is not None and (not isinstance(limit, (int, float)) or isnan(limit)):
            raise OptionError(f"clamp: min and max must be numbers, got {limit!r:.60}")
    top = inf if high is None else high
    return (-inf if low is None else min(low, top), top)


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
    (lambda grad: grad, lambda grad: grad),
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
    (lambda grad: grad, lambda grad: -grad),
    text="1; -1",
    kind=SubOp,
)
mul = binary(
    "mul",
    "input * other.",
    (_times_other, _times_input),
    (lambda grad, a, b: grad * b, lambda grad, a, b: grad * a),
    saves=("input", "other"),
    text="b; a",
)


def _slope(kernel: str) -> Slope:
    """The slope of a BINARY_REAL row: a kernel of its own for each input."""

    def slope(grad: Array, *, input: Array, other: Array, y: Array) -> Array:
        out = empty(y.shape, y.dtype)
        a, b = input.expand(y.shape), other.expand(y.shape)
        run(kernel, a, b, y, grad, out)
        return out

    return slope


_KEPT = ("input", "other", "y")
_BY_NUMBERS_ABOVE_0 = (
    sample((3, 5), positive((3, 5))),
    sample((3, 1), positive((1, 4))),
    sample((2, 3, 4), positive((4,))),
    sample((0, 3), positive((1, 3))),
)
div = binary(
    "div",
    "input / other; whole numbers give floats.",
    (_slope("div_backward_a"), _slope("div_backward_b")),
    (lambda grad, a, b, y: grad / b, lambda grad, a, b, y: -grad * (y / b)),
    saves=_KEPT,
    samples=_BY_NUMBERS_ABOVE_0,
    floats=True,
)


def _angle_slope(b: Tensor, a: Tensor) -> Tensor:
    """The slope b / (a^2 + b^2), and 0 at the origin."""
    nothing = (a.detach() == 0) * (b.detach() == 0)
    size = hypot(pick(nothing, 1.0, a), pick(nothing, 1.0, b))
    return pick(nothing, 0.0, b / size / size)


atan2 = binary(
    "atan2",
    "The angle of the point (other, input), from -pi to pi.",
    (_slope("atan2_backward_a"), _slope("atan2_backward_b")),
    (
        lambda grad, a, b, y: grad * _angle_slope(b, a),
        lambda grad, a, b, y: -grad * _angle_slope(a, b),
    ),
    saves=_KEPT,
    samples=_BY_NUMBERS_ABOVE_0,
    floats=True,
)
hypot = binary(
    "hypot",
    "The root of input^2 + other^2.",
    (_slope("hypot_backward_a"), _slope("hypot_backward_b")),
    (lambda grad, a, b, y: grad * (a / y), lambda grad, a, b, y: grad * (b / y)),
    saves=_KEPT,
    samples=_BY_NUMBERS_ABOVE_0,
)


def _whole_power(input: Array, other: Array) -> Array:
    return map_binary("pow_whole", input, other)


_pow_whole = BinaryOp(_whole_power, name="pow", why="whole numbers have no slope")


class PowerOp(BinaryOp):
    """pow, with whole numbers to whole powers kept whole, as torch does."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Floats as ever; whole numbers by a kernel of their own."""
        exponent = args[1] if len(args) > 1 else named.get("other")
        (a, b), _ = self._bind(args, named)
        assert a is not None and b is not None
        if a.dtype.is_floating_point:
            return self.ran([a, b], {})
        if a.dtype.kind == "bool" or (isinstance(exponent, int) and exponent < 0):
            raise OptionError("pow: whole numbers to negative powers are not whole; use floats")
        return _pow_whole(a, b)


pow = binary(
    "pow",
    "input to the power other.",
    (_slope("pow_backward_a"), _slope("pow_backward_b")),
    (
        lambda grad, a, b, y: pick(b == 0, 0.0, grad * (b * a ** (b - 1))),
        lambda grad, a, b, y: grad * (y * pick((a == 0) * (b >= 0), 1.0, a).log()),
    ),
    saves=_KEPT,
    samples=(
        sample(positive((3, 5)), (3, 5)),
        sample(positive((3, 1)), (1, 4)),
        sample(positive((2, 3, 4)), (4,)),
        sample(positive((0, 3)), (1, 3)),
    ),
    kind=PowerOp,
)


def _winner(loses: str) -> tuple[Slope, Slope]:
    """All of the gradient to the input that does not lose, half to each where they are equal.

    Where one is NaN none loses, and both get all of it, as in torch.
    """

    def share(grad: Array, first: Array, second: Array) -> Array:
        lost = map_binary(loses, first, second, dtypes.bool_).cast(grad.dtype)
        tied = map_binary("eq", first, second, dtypes.bool_).cast(grad.dtype)
        half = map_binary("mul", tied, scalar(0.5, grad.dtype))
        kept = map_binary("sub", scalar(1, grad.dtype), map_binary("add", lost, half))
        return map_binary("mul", grad, kept)

    def to_input(grad: Array, *, input: Array, other: Array) -> Array:
        return share(grad, input, other)

    def to_other(grad: Array, *, input: Array, other: Array) -> Array:
        return share(grad, other, input)

    return to_input, to_other


def _winner_again(loses: str) -> tuple[Derivative, Derivative]:
    """The same with Tensors: the shares are constants."""

    def share(grad: Tensor, first: Tensor, second: Tensor) -> Tensor:
        first, second = first.detach(), second.detach()
        lost: Tensor = OPS[loses](first, second).to(grad.dtype)
        return grad * (1 - (lost + 0.5 * (first == second).to(grad.dtype)))

    return share, lambda grad, a, b: share(grad, b, a)


_DISTINCT = (sample(distinct((3, 5)), (3, 5)), sample((4, 1), (1, 3)), sample((0,), (1,)))
maximum = binary(
    "maximum",
    "The larger of two; NaN wins.",
    _winner("lt"),
    _winner_again("lt"),
    saves=("input", "other"),
    samples=_DISTINCT,
    text="a < b ? 0 : 1 (1/2 where equal); b < a ? 0 : 1",
)
minimum = binary(
    "minimum",
    "The smaller of two; NaN wins.",
    _winner("gt"),
    _winner_again("gt"),
    saves=("input", "other"),
    samples=_DISTINCT,
    text="a > b ? 0 : 1 (1/2 where equal); b > a ? 0 : 1",
)

eq = comparison("eq", "input == other.")
ne = comparison("ne", "input != other.")
lt = comparison("lt", "input < other.")
le = comparison("le", "input <= other.")
gt = comparison("gt", "input > other.")
ge = comparison("ge", "input >= other.")
