"""Sums, means and products. Floats are added in double, whole numbers and bools in int64."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine.array import Array, result, scalar
from gradcli.engine.composite import function
from gradcli.engine.dtype import DType
from gradcli.engine.op import op
from gradcli.engine.ops.along import along, floats
from gradcli.engine.ops.elementwise.arithmetic import add, mul
from gradcli.engine.ops.elementwise.comparison import eq, ne
from gradcli.engine.ops.elementwise.family import map_binary
from gradcli.engine.ops.index.slices import part_along
from gradcli.engine.ops.index.where import where
from gradcli.engine.ops.shape.join import cat
from gradcli.engine.ops.shape.reshape import own_memory, reshape
from gradcli.engine.sample import index, sample
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
    first, *others = shapes.neighbours(dims) or ((),)
    for group in reversed(others):
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


@op(twice="linear", samples=[*_SUMS, sample((0, 3), dim=0)])
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


@mean.gradient_graph
def mean_gradient_graph(
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


def _counted(x: Tensor, dtype: DType | None) -> Tensor:
    """As torch adds and multiplies: whole numbers and bools as int64."""
    chosen = dtype or (x.dtype if x.is_floating_point() else dtypes.int64)
    return x if x.dtype is chosen else x.to(chosen)


@function(
    samples=[
        sample((3, 5)),
        sample((2, 7, 3), dim=1),
        sample((3, 1), dim=-1, keepdim=True),
        sample((4,), dtype=dtypes.float64),
        sample(index((2, 3), 5), dim=0),
        sample((0, 3), dim=0),
    ],
)
def prod(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Product along `dim`, or of everything; 1 for nothing. Halves are multiplied pair by pair."""
    dims = shapes.dim_set(dim, input.ndim, "prod")
    shape = shapes.reduced(input.shape, dims, keepdim)
    x = _counted(input, dtype)
    d = 0 if dim is None or not dims else dims[0]
    x = reshape(x, (x.numel(),)) if dim is None or not dims else x
    size = x.shape[d]
    if not size:
        return reshape(add(sum(x, d), 1), shape)
    while size > 1:
        half = size // 2
        y = mul(part_along(x, d, slice(half)), part_along(x, d, slice(half, 2 * half)))
        x = cat([y, part_along(x, d, slice(2 * half, size))], d) if size % 2 else y
        size = x.shape[d]
    return own_memory(reshape(x, shape), input)  # the product of one number is that number


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
