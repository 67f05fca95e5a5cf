"""Exponentials, logarithms and the error function."""

from __future__ import annotations

import math

from gradcli.engine.ops.elementwise.family import POSITIVE_SAMPLES, unary

exp = unary("exp", "e to the power x.", lambda y: y)
log = unary("log", "Natural logarithm of x.", lambda x: 1 / x, samples=POSITIVE_SAMPLES)
log1p = unary(
    "log1p", "log(1 + x), exact for small x too.", lambda x: 1 / (1 + x), samples=POSITIVE_SAMPLES
)
log2 = unary(
    "log2", "Logarithm of x to the base 2.", lambda x: 1 / math.log(2) / x, samples=POSITIVE_SAMPLES
)
log10 = unary(
    "log10",
    "Logarithm of x to the base 10.",
    lambda x: 1 / math.log(10) / x,
    samples=POSITIVE_SAMPLES,
)
expm1 = unary("expm1", "exp(x) - 1, exact for small x too.", lambda y: y + 1)
exp2 = unary("exp2", "2 to the power x.", lambda y: math.log(2) * y)
erf = unary(
    "erf",
    "The error function: 2 / sqrt(pi) times the integral of exp(-t^2) up to x.",
    lambda x: 2 / math.sqrt(math.pi) * (-x * x).exp(),
)
erfc = unary(
    "erfc", "1 - erf(x), exact for large x too.", lambda x: -2 / math.sqrt(math.pi) * (-x * x).exp()
)
