"""Sums and means. Floats are added in double, whole numbers and bools in int64."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine.array import Array, result, scalar
from gradcli.engine.composite import function
from gradcli.engine.dtype import DType
from gradcli.engine.op import op
from gradcli.engine.ops.along import along, floats
from gradcli.engine.ops.elementwise.comparison import eq, ne
from gradcli.engine.ops.elementwise.family import map_binary
from gradcli.engine.ops.index.where import where
from gradcli.engine.sample import sample
from gradcli.engine.shape import Shape, contiguous_strides, dim_set, numel, reduced
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError

Dim = int | Sequence[int] | None
SAMPLES = (
    sample((3, 5)),
    sample((3, 5), dim=0),
    sample((2, 3, 4), dim=1, keepdim=True),
    sample((2, 3, 4), dim=(0, -1)),
    sample((2, 1, 3, 2), dim=(1, 2)),
    sample(()),
    sample((0, 3), dim=1),
)
_SUMS = (*SAMPLES, sample((3, 2), dtype=dtypes.float64))


def total_over(
    x: Array, dims: tuple[int, ...], keepdim: bool = True, divisor: float | None = None
) -> Array:
    """The sum over `dims`; divided at the end where a divisor is given."""
    dtype, shape = x.dtype, shapes.reduced(x.shape, dims, keepdim)
    between = dtype.computed if dtype.is_floating_point else dtypes.int64
    first, *rest = shapes.neighbours(dims) or ((),)
    for group in reversed(rest):
        x = _pass(x, group, shapes.reduced(x.shape, group, True), between, None)
    return _pass(x, first, shape, dtype if dtype.is_floating_point else between, divisor)


def _pass(
    x: Array, group: tuple[int, ...], shape: Shape, dtype: DType, divisor: float | None
) -> Array:
    """One sum over neighbours, in a shape that has as many elements."""
    lines, options = along(x.shape, group), () if divisor is None else (divisor,)
    kernel = "mean" if options else "sum"
    y = result(kernel, lines.fold(x), shape=lines.results, dtype=dtype, options=options)
    return y.view(shape, contiguous_strides(shape))


def mean_over(x: Array, dims: tuple[int, ...], keepdim: bool = True) -> Array:
    """The mean over `dims`."""
    return total_over(x, dims, keepdim, numel(tuple([x.shape[d] for d in dims])))


def _spread(grad: Array, shape: Shape, dim: Dim, op: str) -> Array:
    """A reduced gradient, repeated over what was reduced."""
    dims = shapes.dim_set(dim, len(shape), op)
    return grad.reshape(shapes.reduced(shape, dims, keepdim=True)).expand(shape)


@op(double_backward="linear", samples=[*_SUMS, sample((0, 3), dim=0)])
def sum(x: Array, *, dim: Dim = None, keepdim: bool = False, dtype: DType | None = None) -> Array:
    """Sum of x over `dim`, or over everything; 0 for nothing."""
    dims = shapes.dim_set(dim, x.ndim, "sum")
    if dtype is not None and dtype is not x.dtype:
        x = x.cast(dtype)
    y = total_over(x, dims, keepdim)
    return y if dtype is None or y.dtype is dtype else y.cast(dtype)


@sum.gradient
def sum_gradient(
    grad: Array, *, dim: Dim, shapes: tuple[Shape, ...], dtypes: tuple[DType, ...]
) -> Array:
    """1 for every element."""
    spread = _spread(grad, shapes[0], dim, "sum")
    return spread if spread.dtype is dtypes[0] else spread.cast(dtypes[0])


@op(samples=[*_SUMS, sample((0, 3), dim=0)])
def mean(x: Array, *, dim: Dim = None, keepdim: bool = False, dtype: DType | None = None) -> Array:
    """Sum over `dim`, or over everything, divided by the number of elements; NaN for none."""
    dims = shapes.dim_set(dim, x.ndim, "mean")
    x = floats("mean", x, dtype)
    return mean_over(x, dims, keepdim)


@mean.gradient
def mean_gradient(
    grad: Array, *, dim: Dim, shapes: tuple[Shape, ...], dtypes: tuple[DType, ...]
) -> Array:
    """1 / count for every element."""
    spread = _spread(_divided(grad, shapes[0], dim), shapes[0], dim, "mean")
    return spread if spread.dtype is dtypes[0] else spread.cast(dtypes[0])


@mean.double_backward
def mean_double_backward(
    grad: Tensor, *, dim: Dim, shapes: tuple[Shape, ...], dtypes: tuple[DType, ...]
) -> Tensor:
    """1 / count for every element."""
    dims = dim_set(dim, len(shapes[0]), "mean")
    spread = grad.reshape(reduced(shapes[0], dims, keepdim=True)).expand(shapes[0])
    # Divided last: where there is nothing to spread over, there is nothing to divide by 0.
    return (spread / numel(tuple(shapes[0][d] for d in dims))).to(dtypes[0])


def _divided(grad: Array, shape: Shape, dim: Dim) -> Array:
    dims = shapes.dim_set(dim, len(shape), "mean")
    count = shapes.numel(tuple(shape[d] for d in dims))
    return map_binary("div", grad, scalar(count, grad.dtype))


@function(samples=_SUMS)
def nansum(
    input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The sum over `dim`, or over everything, in which NaN counts as 0."""
    x = input if dtype is None else input.to(dtype)
    return sum(where(ne(x, x), 0, x) if x.is_floating_point() else x, dim, keepdim)


@function(samples=_SUMS)
def nanmean(
    input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The mean over `dim`, or over everything, of what is not NaN."""
    x = input if dtype is None else input.to(dtype)
    if not x.is_floating_point():
        raise DTypeError(f"nanmean: input must be float32, float64 or bfloat16, got {x.dtype}")
    count = sum(eq(x, x), dim, keepdim)
    return nansum(x, dim, keepdim) / count.to(x.dtype)
