"""Activations. Their maths stands in csrc/scalar_ops.h, or they are made of other ops."""

from __future__ import annotations

from math import inf
from typing import Annotated

from gradcli.engine.array import Array, empty, run
from gradcli.engine.composite import function
from gradcli.engine.kind import Bound
from gradcli.engine.op import op
from gradcli.engine.ops.elementwise.arithmetic import div, mul, sub
from gradcli.engine.ops.elementwise.family import (
    NONZERO_SAMPLES,
    UNARY_SAMPLES,
    as_float,
    declare_sign_slope,
    declare_slope,
    map_binary,
    map_unary,
    unary,
)
from gradcli.engine.ops.elementwise.trigonometry import tanh
from gradcli.engine.ops.index.where import where
from gradcli.engine.ops.shape.split import chunk
from gradcli.engine.sample import SHAPES, Sample, away_from, sample, wrong
from gradcli.engine.shape import dim_index
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError
from gradcli.wording import quantity

Cap = Annotated[
    float, Bound("a finite number above 0", lambda cap: 0 < cap < inf, limits=(("gt", 0),))
]
_HALVES = [sample((3, 6)), sample((4, 5), dim=0), sample((1, 2, 3), dim=1), sample((0, 4))]
_ODD = [
    wrong(sample((4, 5)), "dim -1 of shape (4, 5) has no two halves"),
    wrong(sample((), dim=0), "has no two halves"),
]


def _between_kinks(*points: float) -> tuple[Sample, ...]:
    """Samples on every side of the kinks."""
    return tuple(sample(away_from(shape, point)) for point in points for shape in SHAPES)


silu = unary("silu", "x * sigmoid(x), also known as swish (Elfwing et al. 2017).")
mish = unary("mish", "x * tanh(log(1 + exp(x))) (Misra 2019).")
selu = unary(
    "selu",
    "elu with the two constants that keep mean 0 and variance 1 (Klambauer et al. 2017).",
    samples=NONZERO_SAMPLES,
)
logsigmoid = unary("logsigmoid", "log(sigmoid(x)), without underflow on either side.")
softsign = unary(
    "softsign",
    "x / (1 + |x|): like tanh, but slower to arrive.",
)
hardsigmoid = unary(
    "hardsigmoid",
    "(x + 3) / 6, held between 0 and 1.",
    samples=_between_kinks(3.0, -3.0),
)
hardswish = unary(
    "hardswish",
    "x * hardsigmoid(x) (Howard et al. 2019).",
    samples=_between_kinks(3.0, -3.0),
)


@op(
    saves="x",
    samples=[*UNARY_SAMPLES, sample((3, 5), approximate="tanh")],
    wrong=[wrong(sample((2,), approximate="fast"), "gelu: approximate must be")],
)
def gelu(x: Array, *, approximate: str = "none") -> Array:
    """The element times the normal distribution's share below it (Hendrycks and Gimpel 2016)."""
    return map_unary(_gelu_kernel(approximate), as_float(x))


declare_slope(gelu, lambda approximate: (_gelu_kernel(approximate), ()))


def _gelu_kernel(approximate: str) -> str:
    if approximate not in ("none", "tanh"):
        raise OptionError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r:.60}")
    return "gelu" if approximate == "none" else "gelu_tanh"


@op(saves="x", samples=[*NONZERO_SAMPLES, sample(away_from((4,)), negative_slope=0.3)])
def leaky_relu(x: Array, *, negative_slope: float = 0.01) -> Array:
    """The element where it is positive, otherwise negative_slope times it."""
    return map_unary("leaky_relu", as_float(x), (negative_slope,))


declare_slope(leaky_relu, lambda negative_slope: ("leaky_relu", (negative_slope,)))


@op(saves="x", samples=[*NONZERO_SAMPLES, sample(away_from((4,)), alpha=0.3)])
def elu(x: Array, *, alpha: float = 1.0) -> Array:
    """The element where it is positive, otherwise alpha * (exp(x) - 1) (Clevert et al. 2015)."""
    return map_unary("elu", as_float(x), (alpha, 1.0))


declare_slope(elu, lambda alpha: ("elu", (alpha, 1.0)))


@op(
    saves="x",
    samples=[*NONZERO_SAMPLES, sample(away_from((4,)), alpha=0.3)],
    wrong=[wrong(sample((2,), alpha=0.0), "celu: alpha must not be 0")],
)
def celu(x: Array, *, alpha: float = 1.0) -> Array:
    """The element where it is positive, otherwise alpha * (exp(x / alpha) - 1) (Barron 2017)."""
    if alpha == 0:
        raise OptionError("celu: alpha must not be 0")
    return map_unary("elu", as_float(x), (alpha, 1 / alpha))


declare_slope(celu, lambda alpha: ("elu", (alpha, 1 / alpha)))


@op(
    saves="x",
    samples=[
        *NONZERO_SAMPLES,
        sample((4,), beta=2.5),
        sample(away_from((3, 2), 0.5), threshold=0.5),
    ],
    wrong=[wrong(sample((2,), beta=0.0), "softplus: beta must not be 0")],
)
def softplus(x: Array, *, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """log(1 + exp(beta * x)) / beta; the element itself where beta * x is above the threshold."""
    if beta == 0:
        raise OptionError("softplus: beta must not be 0")
    return map_unary("softplus", as_float(x), (beta, threshold))


declare_slope(softplus, lambda beta, threshold: ("softplus", (beta, threshold)))


@op(
    saves="x",
    samples=[
        *_between_kinks(1.0, -1.0),
        sample(away_from((3, 1), 0.5), min_val=0.5, max_val=9.0),
        sample(away_from((4,)), min_val=0.0, max_val=0.0),
    ],
    wrong=[wrong(sample((2,), min_val=1.5), "hardtanh: min_val must be at most max_val, got 1.5")],
)
def hardtanh(x: Array, *, min_val: float = -1.0, max_val: float = 1.0) -> Array:
    """The element held between min_val and max_val; at the ends the gradient is 0."""
    if not min_val <= max_val:
        raise OptionError(f"hardtanh: min_val must be at most max_val, got {min_val} and {max_val}")
    return map_unary("hardtanh", as_float(x), (min_val, max_val))


declare_slope(hardtanh, lambda min_val, max_val: ("hardtanh", (min_val, max_val)))


@op(
    method=False,
    saves="x",
    samples=[
        sample(away_from((3, 5), 0.5), threshold=0.5, value=0.2),
        sample(away_from((1, 4)), threshold=0.0, value=-3.0),
    ],
)
def threshold(x: Array, *, threshold: float, value: float) -> Array:
    """The element where it is above the threshold, otherwise the value."""
    return map_unary("threshold", as_float(x), (threshold, value))


declare_slope(threshold, lambda threshold, value: ("threshold", (threshold, value)))


@function(method=False, samples=_between_kinks(0.0, 6.0))
def relu6(input: Tensor) -> Tensor:
    """The element held between 0 and 6 (Krizhevsky 2010)."""
    return hardtanh(input, 0.0, 6.0)


@function(method=False, samples=NONZERO_SAMPLES)
def relu_squared(input: Tensor) -> Tensor:
    """The square of relu(x) (So et al. 2021)."""
    positive = relu(input)
    return mul(positive, positive)


@function(
    samples=[
        sample(away_from((3, 5)), (5,)),
        sample(away_from((2, 3, 4)), (1,)),
        sample(away_from((2, 3, 1, 4)), (3,)),
        sample(away_from((4,)), (1,)),
        sample(away_from(()), (1,)),
    ],
    wrong=[
        wrong(sample((2, 3), (2,)), "weight must hold 1 or 3 numbers, got shape (2,)"),
        wrong(sample((2, 3), (1, 3)), "weight must hold 1 or 3 numbers"),
    ],
)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """The element where it is positive, otherwise weight * x; one weight, or one a channel."""
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.ndim > 1 or weight.numel() not in (1, channels):
        raise ShapeError(
            f"prelu: weight must hold 1 or {quantity(channels, 'number')}, got shape {weight.shape}"
        )
    if input.ndim > 1:
        weight = weight.reshape(1, -1, *[1] * (input.ndim - 2))
    elif not input.ndim:
        weight = weight.reshape(())
    above = input > 0
    # In backward 0 times an infinite weight, or a weight of 0 times infinity, would be NaN.
    below = where(above, 0.0, input)
    return where(above, input, mul(weight, below))


@function(method=False, samples=[sample(shape) for shape in SHAPES])
def tanhshrink(input: Tensor) -> Tensor:
    """The element minus its tanh: x - tanh(x)."""
    return sub(input, tanh(input))


@function(
    method=False,
    samples=[*(sample(shape, cap=2.0) for shape in SHAPES), sample((3, 1), cap=4.0)],
)
def softcap(input: Tensor, cap: Cap) -> Tensor:
    """The element held softly between -cap and cap: cap * tanh(x / cap) (Gemma 2, 2024)."""
    return mul(tanh(div(input, cap)), cap)


def _decomposed_glu(input: Tensor, *, dim: int = -1) -> Tensor:
    first, second = chunk(input, 2, dim)
    return mul(first, sigmoid(second))


@op(
    method=False,
    saves="input",
    decomposition=_decomposed_glu,
    double_backward="decomposition",
    samples=_HALVES,
    wrong=_ODD,
)
def glu(input: Array, *, dim: int = -1) -> Array:
    """The first half along `dim` times the sigmoid of the second (Dauphin et al. 2016)."""
    return map_binary("glu", *_halves_of(as_float(input), _even("glu", input, dim)))


@glu.gradient
def glu_gradient(grad: Array, *, input: Array, dim: int) -> Array:
    """Each half of it is written by a kernel of its own."""
    d = dim_index(dim, input.ndim, "glu")
    out = empty(input.shape, input.dtype)
    first, second = _halves_of(input, d)
    for row, half in zip(("glu_backward_a", "glu_backward_b"), _halves_of(out, d), strict=True):
        run(row, first, second, first, grad, half)
    return out


@function(method=False, samples=_HALVES, wrong=_ODD)
def swiglu(input: Tensor, dim: int = -1) -> Tensor:
    """The silu of the first half along `dim` times the second (Shazeer 2020)."""
    first, second = _halves("swiglu", input, dim)
    return mul(silu(first), second)


def _halves(name: str, input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    first, second = chunk(input, 2, _even(name, input, dim))
    return first, second


def _even(name: str, input: Tensor | Array, dim: int) -> int:
    """`dim` from the front, once there is an even number of elements along it."""
    d = dim_index(dim, input.ndim, name)
    if not input.ndim or input.shape[d] % 2:
        raise ShapeError(f"{name}: dim {dim} of shape {input.shape} has no two halves")
    return d


def _halves_of(x: Array, dim: int) -> tuple[Array, Array]:
    half = x.shape[dim] // 2
    shape = (*x.shape[:dim], half, *x.shape[dim + 1 :])
    return x.view(shape, x.strides), x.view(shape, x.strides, x.offset + half * x.strides[dim])


sigmoid = unary("sigmoid", "1 / (1 + exp(-x)), without overflow on either side.")
relu = unary(
    "relu",
    "x where it is positive, otherwise 0.",
    samples=NONZERO_SAMPLES,
    whole="maximum",
)
declare_sign_slope(relu)
