"""Angles: trigonometric and hyperbolic functions."""

from __future__ import annotations

from gradcli.engine.ops.elementwise.family import (
    DIVISION_SAMPLES,
    UNIT_SAMPLES,
    binary,
    pick,
    row_slope,
    unary,
)
from gradcli.engine.tensor import Tensor

sin = unary("sin", "Sine of x, in radians.", lambda x: x.cos())
cos = unary("cos", "Cosine of x, in radians.", lambda x: -x.sin())
tanh = unary("tanh", "Hyperbolic tangent of x.", lambda y: 1 - y * y)


def _angle_slope(b: Tensor, a: Tensor) -> Tensor:
    """The slope b / (a^2 + b^2), and 0 at the origin."""
    nothing = (a.detach() == 0) * (b.detach() == 0)
    size = hypot(pick(nothing, 1.0, a), pick(nothing, 1.0, b))
    return pick(nothing, 0.0, b / size / size)


atan2 = binary(
    "atan2",
    "The angle of the point (other, input), from -pi to pi.",
    (row_slope("atan2_backward_a"), row_slope("atan2_backward_b")),
    (
        lambda grad, a, b, y: grad * _angle_slope(b, a),
        lambda grad, a, b, y: -grad * _angle_slope(a, b),
    ),
    saves=("input", "other", "y"),
    samples=DIVISION_SAMPLES,
    floats=True,
)
hypot = binary(
    "hypot",
    "The root of input^2 + other^2.",
    (row_slope("hypot_backward_a"), row_slope("hypot_backward_b")),
    (lambda grad, a, b, y: grad * (a / y), lambda grad, a, b, y: grad * (b / y)),
    saves=("input", "other", "y"),
    samples=DIVISION_SAMPLES,
)
tan = unary("tan", "Tangent of x, in radians.", lambda y: 1 + y * y, samples=UNIT_SAMPLES)
asin = unary(
    "asin",
    "The angle whose sine is x.",
    lambda x: ((1 - x) * (1 + x)).rsqrt(),
    samples=UNIT_SAMPLES,
)
acos = unary(
    "acos",
    "The angle whose cosine is x.",
    lambda x: -((1 - x) * (1 + x)).rsqrt(),
    samples=UNIT_SAMPLES,
)
atan = unary("atan", "The angle whose tangent is x.", lambda x: 1 / (1 + x * x))
sinh = unary("sinh", "Hyperbolic sine of x.", lambda x: x.cosh())
cosh = unary("cosh", "Hyperbolic cosine of x.", lambda x: x.sinh())
