"""More functions of one number: logarithms, angles, error functions, rounding."""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Annotated

from gradcli.engine.array import Array, scalar
from gradcli.engine.kind import within
from gradcli.engine.op import op
from gradcli.engine.ops.along import floats
from gradcli.engine.ops.family import map_binary, map_unary, unary
from gradcli.engine.sample import away_from, positive, sample, unit, wrong
from gradcli.engine.tensor import Tensor

_SHAPES = ((3, 5), (2, 1, 4), (), (0, 3))
_POSITIVE = tuple(sample(positive(shape)) for shape in _SHAPES)
_NO_ZERO = tuple(sample(away_from(shape)) for shape in _SHAPES)
_BETWEEN = tuple(sample(unit(shape)) for shape in _SHAPES)

log1p = unary(
    "log1p", "log(1 + x), exact for small x too.", lambda x: 1 / (1 + x), samples=_POSITIVE
)
log2 = unary("log2", "Logarithm of x to the base 2.", lambda x: 1 / log(2) / x, samples=_POSITIVE)
log10 = unary(
    "log10", "Logarithm of x to the base 10.", lambda x: 1 / log(10) / x, samples=_POSITIVE
)
expm1 = unary("expm1", "exp(x) - 1, exact for small x too.", lambda y: y + 1)
exp2 = unary("exp2", "2 to the power x.", lambda y: log(2) * y)
reciprocal = unary("reciprocal", "1 / x.", lambda y: -y * y, samples=_NO_ZERO)
tan = unary("tan", "Tangent of x, in radians.", lambda y: 1 + y * y, samples=_BETWEEN)
asin = unary(
    "asin", "The angle whose sine is x.", lambda x: ((1 - x) * (1 + x)).rsqrt(), samples=_BETWEEN
)
acos = unary(
    "acos", "The angle whose cosine is x.", lambda x: -((1 - x) * (1 + x)).rsqrt(), samples=_BETWEEN
)
atan = unary("atan", "The angle whose tangent is x.", lambda x: 1 / (1 + x * x))
sinh = unary("sinh", "Hyperbolic sine of x.", lambda x: x.cosh())
cosh = unary("cosh", "Hyperbolic cosine of x.", lambda x: x.sinh())
erf = unary(
    "erf",
    "The error function: 2 / sqrt(pi) times the integral of exp(-t^2) up to x.",
    lambda x: 2 / sqrt(pi) * (-x * x).exp(),
)
erfc = unary("erfc", "1 - erf(x), exact for large x too.", lambda x: -2 / sqrt(pi) * (-x * x).exp())


Decimals = Annotated[int, within("a whole number from -300 to 300", ge=-300, le=300)]


@op(samples=[*_BETWEEN, sample((3, 1), decimals=2), sample((2, 3), decimals=-1)])
def round(x: Array, *, decimals: Decimals = 0) -> Array:
    """The nearest whole number, halves to the even one; or with so many decimals."""
    if not x.dtype.is_floating_point:
        return x.copy()
    if not decimals:
        return map_unary("round", x)
    factor = scalar(10.0 ** (decimals if decimals > 0 else -decimals), x.dtype)
    enter, leave = ("mul", "div") if decimals > 0 else ("div", "mul")
    return map_binary(leave, map_unary("round", map_binary(enter, x, factor)), factor)


@round.gradient
def round_gradient(grad: Array) -> Array:
    """0: it is flat almost everywhere."""
    return map_binary("mul", grad, scalar(0, grad.dtype))


@round.gradient_graph
def round_gradient_graph(grad: Tensor) -> Tensor:
    """0 again."""
    return grad * 0.0


@op(samples=_BETWEEN, wrong=[wrong(sample((2,)), "frac: x must be float", dtype="int64")])
def frac(x: Array) -> Array:
    """The element minus trunc of it."""
    return map_unary("frac", floats("frac", x))


@frac.gradient
def frac_gradient(grad: Array) -> Array:
    """1 for every element."""
    return grad


@frac.gradient_graph
def frac_gradient_graph(grad: Tensor) -> Tensor:
    """1 again."""
    return grad
