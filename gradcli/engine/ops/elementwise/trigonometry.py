"""Angles: trigonometric and hyperbolic functions."""

from __future__ import annotations

from gradcli.engine.ops.elementwise.family import (
    DIVISION_SAMPLES,
    UNIT_SAMPLES,
    binary,
    unary,
)

sin = unary("sin", "Sine of x, in radians.")
cos = unary("cos", "Cosine of x, in radians.")
tanh = unary("tanh", "Hyperbolic tangent of x.")


atan2 = binary(
    "atan2",
    "The angle of the point (other, input), from -pi to pi.",
    samples=DIVISION_SAMPLES,
    floats=True,
)
hypot = binary(
    "hypot",
    "The root of input^2 + other^2.",
    samples=DIVISION_SAMPLES,
)
tan = unary("tan", "Tangent of x, in radians.", samples=UNIT_SAMPLES)
asin = unary(
    "asin",
    "The angle whose sine is x.",
    samples=UNIT_SAMPLES,
)
acos = unary(
    "acos",
    "The angle whose cosine is x.",
    samples=UNIT_SAMPLES,
)
atan = unary("atan", "The angle whose tangent is x.")
sinh = unary("sinh", "Hyperbolic sine of x.")
cosh = unary("cosh", "Hyperbolic cosine of x.")
