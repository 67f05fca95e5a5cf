"""Softmax, its logarithm and softmin, along any dimension."""

from __future__ import annotations

from collections.abc import Callable

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine import table
from gradcli.engine.array import Array, result
from gradcli.engine.composite import function
from gradcli.engine.dtype import DType
from gradcli.engine.op import Op, op
from gradcli.engine.ops.along import Along, along, floats
from gradcli.engine.sample import LINES, sample
from gradcli.engine.tensor import Tensor

_SAMPLES = (*LINES, sample((17,), dim=0))


def _along(x: Array, dim: int, name: str) -> Along:
    d = shapes.dim_index(dim, len(x.shape), name)
    return along(x.shape, (d,) if x.shape else ())


def _decomposed_softmax(x: Tensor, *, dim: int, dtype: DType | None = None) -> Tensor:
    x = x if dtype is None else table.to(x, dtype)
    if x.numel() == 0:
        return x
    raised = table.exp(x - table.amax(x, dim, keepdim=True).detach())
    return raised / table.sum(raised, dim, keepdim=True)


def _decomposed_log_softmax(x: Tensor, *, dim: int, dtype: DType | None = None) -> Tensor:
    x = x if dtype is None else table.to(x, dtype)
    if x.numel() == 0:
        return x
    lowered = x - table.amax(x, dim, keepdim=True).detach()
    return lowered - table.log(table.sum(table.exp(lowered), dim, keepdim=True))


def _softmax_op(
    name: str, doc: str, decomposition: Callable[..., Tensor], slope: Callable[..., Tensor]
) -> Op[Tensor]:
    def forward(x: Array, *, dim: int, dtype: DType | None = None) -> Array:
        lines = _along(x, dim, name)
        x = floats(name, x, dtype)
        y = result(f"{name}_forward", lines.fold(x), shape=lines.lines, dtype=x.dtype)
        return lines.unfold(y)

    forward.__doc__ = doc
    new_op = op(name=name, saves="y", samples=_SAMPLES, decomposition=decomposition)(forward)

    @new_op.gradient
    def gradient(grad: Array, *, y: Array, dim: int, dtypes: tuple[DType, ...]) -> Array:
        lines = _along(y, dim, name)
        folded = lines.fold(y), lines.fold(grad)
        out = result(f"{name}_backward", *folded, shape=lines.lines, dtype=y.dtype)
        return lines.unfold(out if dtypes[0] is y.dtype else out.cast(dtypes[0]))

    @new_op.double_backward
    def double_backward(grad: Tensor, *, y: Tensor, dim: int, dtypes: tuple[DType, ...]) -> Tensor:
        return slope(grad, y, dim).to(dtypes[0])

    return new_op


softmax = _softmax_op(
    "softmax",
    "exp(x) / sum(exp(x)) along `dim`, with the maximum taken off first; NaN where all is -inf.",
    _decomposed_softmax,
    lambda grad, y, dim: (grad - table.sum(y * grad, dim, keepdim=True)) * y,
)
log_softmax = _softmax_op(
    "log_softmax",
    "Logarithm of softmax, without the underflow of taking one after the other.",
    _decomposed_log_softmax,
    lambda grad, y, dim: grad - table.exp(y) * table.sum(grad, dim, keepdim=True),
)


@function(method=False, samples=[*LINES, sample((4, 1), dim=0, dtype=dtypes.float64)])
def softmin(input: Tensor, dim: int, dtype: dtypes.DType | None = None) -> Tensor:
    """exp(-x) / the sum of exp(-x) along `dim`."""
    return softmax(-input, dim, dtype)
