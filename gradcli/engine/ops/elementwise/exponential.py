"""Exponentials, logarithms and the error function."""

from __future__ import annotations

from gradcli.engine.ops.elementwise.family import POSITIVE_SAMPLES, unary

exp = unary("exp", "e to the power x.")
log = unary("log", "Natural logarithm of x.", samples=POSITIVE_SAMPLES)
log1p = unary("log1p", "log(1 + x), exact for small x too.", samples=POSITIVE_SAMPLES)
log2 = unary("log2", "Logarithm of x to the base 2.", samples=POSITIVE_SAMPLES)
log10 = unary(
    "log10",
    "Logarithm of x to the base 10.",
    samples=POSITIVE_SAMPLES,
)
expm1 = unary("expm1", "exp(x) - 1, exact for small x too.")
exp2 = unary("exp2", "2 to the power x.")
erf = unary(
    "erf",
    "The error function: 2 / sqrt(pi) times the integral of exp(-t^2) up to x.",
)
erfc = unary("erfc", "1 - erf(x), exact for large x too.")
