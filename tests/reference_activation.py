"""References of activations, in plain Python float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from grid import Grid, elementwise


def _elu(x: float, alpha: float = 1.0) -> float:
    return x if x > 0 else alpha * math.expm1(x)


def _celu(x: float, alpha: float = 1.0) -> float:
    return x if x > 0 else alpha * math.expm1(x / alpha)


def _softplus(x: float, beta: float = 1.0, threshold: float = 20.0) -> float:
    return x if beta * x > threshold else math.log1p(math.exp(beta * x)) / beta


def _hardsigmoid(x: float) -> float:
    return min(max(x + 3, 0.0), 6.0) / 6


def _hardtanh(x: float, min_val: float = -1.0, max_val: float = 1.0) -> float:
    return min(max(x, min_val), max_val)


def _threshold(x: float, threshold: float, value: float) -> float:
    return x if x > threshold else value


def _silu(x: float) -> float:
    return x / (1 + math.exp(-x))


def _logsigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x)) if x > 0 else x - math.log1p(math.exp(x))


def _glu(input: Grid, dim: int = -1) -> Grid:
    d = dim % input.ndim
    half = input.shape[d] // 2

    def gated(at: tuple[int, ...]) -> float:
        gate = input[(*at[:d], at[d] + half, *at[d + 1 :])]
        return float(input[at]) / (1 + math.exp(-gate))

    return Grid.from_function((*input.shape[:d], half, *input.shape[d + 1 :]), gated)


REFERENCES: dict[str, Callable[..., Any]] = {
    "elu": elementwise(_elu),
    "celu": elementwise(_celu),
    "selu": elementwise(lambda x: 1.0507009873554805 * _elu(x, 1.6732632423543772)),
    "silu": elementwise(_silu),
    "glu": _glu,
    "mish": elementwise(lambda x: x * math.tanh(_softplus(x))),
    "softplus": elementwise(_softplus),
    "logsigmoid": elementwise(_logsigmoid),
    "softsign": elementwise(lambda x: x / (1 + abs(x))),
    "hardsigmoid": elementwise(_hardsigmoid),
    "hardswish": elementwise(lambda x: x * _hardsigmoid(x)),
    "hardtanh": elementwise(_hardtanh),
    "threshold": elementwise(_threshold),
}
