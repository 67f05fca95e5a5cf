"""Activations. One function a name in YAML, whose parameters are the keys; see layers.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from gradcli.config.signal import Fitted, Signal, floats
from gradcli.engine.kind import Finite, Positive
from gradcli.errors import ShapeError

if TYPE_CHECKING:
    from gradcli.engine import nn


def relu(x: Signal) -> Fitted:
    """The larger of x and 0."""
    return _on(x, "ReLU")


def relu6(x: Signal) -> Fitted:
    """The input held between 0 and 6."""
    return _on(x, "ReLU6")


def relusquared(x: Signal) -> Fitted:
    """The square of relu."""
    return _on(x, "ReLUSquared")


def leakyrelu(x: Signal, negative_slope: Finite = 0.01) -> Fitted:
    """The input where it is positive, otherwise negative_slope * x."""
    return _on(x, "LeakyReLU", negative_slope=negative_slope)


def prelu(x: Signal, init: Finite = 0.25, *, per_channel: bool = False) -> Fitted:
    """The input where it is positive, otherwise a learnt weight times x."""
    count = floats(x).shape[0] if per_channel else 1
    return _on(x, "PReLU", num_parameters=count, init=init)._replace(parameters=count)


def elu(x: Signal, alpha: Finite = 1.0) -> Fitted:
    """The input where it is positive, otherwise alpha * (exp(x) - 1)."""
    return _on(x, "ELU", alpha=alpha)


def selu(x: Signal) -> Fitted:
    """ELU with the two constants that keep mean 0 and variance 1."""
    return _on(x, "SELU")


def celu(x: Signal, alpha: Positive = 1.0) -> Fitted:
    """The input where it is positive, otherwise alpha * (exp(x / alpha) - 1)."""
    return _on(x, "CELU", alpha=alpha)


def gelu(x: Signal, *, approximate: Literal["none", "tanh"] = "none") -> Fitted:
    """The input times P(normal <= input)."""
    return _on(x, "GELU", approximate=approximate)


def silu(x: Signal) -> Fitted:
    """The input times its sigmoid."""
    return _on(x, "SiLU")


def mish(x: Signal) -> Fitted:
    """The input times tanh(log(1 + exp(input)))."""
    return _on(x, "Mish")


def softplus(x: Signal, *, beta: Positive = 1.0, threshold: Finite = 20.0) -> Fitted:
    """The softened relu log(1 + exp(beta x)) / beta; x itself above the threshold."""
    return _on(x, "Softplus", beta=beta, threshold=threshold)


def softsign(x: Signal) -> Fitted:
    """The input over 1 + |input|."""
    return _on(x, "Softsign")


def hardswish(x: Signal) -> Fitted:
    """The input times its hardsigmoid."""
    return _on(x, "Hardswish")


def hardsigmoid(x: Signal) -> Fitted:
    """(x + 3) / 6, held between 0 and 1."""
    return _on(x, "Hardsigmoid")


def hardtanh(x: Signal, *, min_val: Finite = -1.0, max_val: Finite = 1.0) -> Fitted:
    """The input held between min_val and max_val."""
    if not min_val < max_val:
        raise ShapeError(f"min_val {min_val} must be below max_val {max_val}")
    return _on(x, "Hardtanh", min_val=min_val, max_val=max_val)


def threshold(x: Signal, threshold: Finite, *, value: Finite = 0.0) -> Fitted:
    """The input where it is above the threshold, otherwise the value."""
    return _on(x, "Threshold", threshold=threshold, value=value)


def softcap(x: Signal, cap: Positive) -> Fitted:
    """The input held softly between -cap and cap: cap * tanh(x / cap)."""
    return _on(x, "SoftCap", cap=cap)


def tanh(x: Signal) -> Fitted:
    """Hyperbolic tangent of x."""
    return _on(x, "Tanh")


def tanhshrink(x: Signal) -> Fitted:
    """The input minus its tanh."""
    return _on(x, "Tanhshrink")


def sigmoid(x: Signal) -> Fitted:
    """1 / (1 + exp(-x))."""
    return _on(x, "Sigmoid")


def logsigmoid(x: Signal) -> Fitted:
    """The logarithm of the sigmoid."""
    return _on(x, "LogSigmoid")


def softmax(x: Signal, *, dim: int = -1) -> Fitted:
    """The shares exp(x) / sum(exp(x)) along a dimension of the sample."""
    return _on(x, "Softmax", dim=_of_batch(x, dim))


def logsoftmax(x: Signal, *, dim: int = -1) -> Fitted:
    """The logarithm of softmax along a dimension of the sample."""
    return _on(x, "LogSoftmax", dim=_of_batch(x, dim))


def softmin(x: Signal, *, dim: int = -1) -> Fitted:
    """The softmax of -x along a dimension of the sample."""
    return _on(x, "Softmin", dim=_of_batch(x, dim))


def glu(x: Signal, *, dim: int = -1) -> Fitted:
    """The first half along a dimension of the sample times the sigmoid of the second."""
    return _halved(x, "GLU", dim)


def swiglu(x: Signal, *, dim: int = -1) -> Fitted:
    """The silu of the first half along a dimension of the sample times the second half."""
    return _halved(x, "SwiGLU", dim)


def identity(x: Signal) -> Fitted:
    """The input itself."""
    return _on(x, "Identity")._replace(output=x)


def _on(x: Signal, kind: str, **options: Any) -> Fitted:
    """A module that keeps the shape."""

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.LAYERS[kind](**options)

    return Fitted(floats(x), 0, make)


def _halved(x: Signal, kind: str, dim: int) -> Fitted:
    """A module that leaves half of one dimension."""
    at = _of_batch(x, dim)
    sizes = list(x.shape)
    d = at - 1 if at > 0 else at
    if sizes[d] % 2:
        raise ShapeError(f"dimension {dim} of {x} has no two halves")
    sizes[d] //= 2
    return _on(x, kind, dim=at)._replace(output=x.to(*sizes))


def _of_batch(x: Signal, dim: int) -> int:
    """A dimension of the sample as one of the batch, which comes first."""
    if not -len(floats(x).shape) <= dim < len(x.shape):
        raise ShapeError(f"dim {dim} is not one of the {len(x.shape)} dimensions of {x}")
    return dim + 1 if dim >= 0 else dim
