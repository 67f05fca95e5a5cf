"""First values of weights. Each function overwrites a tensor and returns it."""

from __future__ import annotations

from math import sqrt
from typing import Any

from gradcli.engine.graph import no_grad
from gradcli.engine.shape import numel
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError

_GAINS = {"linear": 1.0, "conv2d": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": sqrt(2.0)}


@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Numbers evenly spread over a..b."""
    tensor.uniform_(a, b, generator=generator)
    return tensor


@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Normally distributed numbers."""
    tensor.normal_(mean, std, generator=generator)
    return tensor


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere."""
    tensor.fill_(val)
    return tensor


def zeros_(tensor: Tensor) -> Tensor:
    """0 everywhere."""
    return constant_(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    """1 everywhere."""
    return constant_(tensor, 1)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """How much wider weights must be for outputs of unit variance after an activation."""
    if nonlinearity == "leaky_relu":
        return sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        raise OptionError(
            f"calculate_gain: no gain for '{nonlinearity}'; known: leaky_relu, {', '.join(_GAINS)}"
        )
    return _GAINS[nonlinearity]


def fans(tensor: Tensor) -> tuple[int, int]:
    """Inputs to and outputs of one unit: (fan_in, fan_out) of a weight (out, in, ...)."""
    if tensor.ndim < 2:
        raise ShapeError(f"init: fan in and out need 2 or more dimensions, got {tensor.shape}")
    window = numel(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Evenly spread with variance gain^2 / fan (He et al. 2015); `a` is leaky_relu's slope."""
    if mode not in ("fan_in", "fan_out"):
        raise OptionError(f"kaiming_uniform_: mode must be 'fan_in' or 'fan_out', got {mode!r}")
    if tensor.numel() == 0:
        return tensor
    fan = fans(tensor)[mode == "fan_out"]
    bound = calculate_gain(nonlinearity, a) * sqrt(3 / fan)
    return uniform_(tensor, -bound, bound, generator)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Evenly spread with variance 2 gain^2 / (fan_in + fan_out) (Glorot and Bengio 2010)."""
    if tensor.numel() == 0:
        return tensor
    bound = gain * sqrt(6 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def weight_and_bias_(weight: Tensor, bias: Tensor | None) -> None:
    """Both evenly spread within 1 / sqrt(fan_in), as torch begins linear and conv layers."""
    kaiming_uniform_(weight, a=sqrt(5))
    if bias is not None:
        fan_in, _ = fans(weight)
        bound = 1 / sqrt(fan_in) if fan_in else 0.0
        uniform_(bias, -bound, bound)
