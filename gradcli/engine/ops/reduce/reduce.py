"""Sums, means and variances. Floats are added in double, whole numbers and bools in int64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine import table
from gradcli.engine.array import Array, run, scalar
from gradcli.engine.dtype import DType
from gradcli.engine.op import op
from gradcli.engine.ops.along import along, floats
from gradcli.engine.ops.family import map_binary
from gradcli.engine.sample import distinct, sample, wrong
from gradcli.engine.shape import Shape, dim_set, numel, reduced
from gradcli.engine.tensor import Tensor

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
WRONG = (
    wrong(sample((3, 5), dim=2), "dim 2 is outside -2..1"),
    wrong(sample((3, 5), dim=(0, -2)), "names one dimension twice"),
)


def _total(x: Array, dims: tuple[int, ...], divisor: float | None = None) -> Array:
    """The sum over `dims`, which stay with size 1; divided at the end where a divisor is given."""
    runs, dtype = shapes.neighbours(dims) or [()], x.dtype
    for i, group in enumerate(reversed(runs)):
        lines = along(x.shape, group)
        last = i == len(runs) - 1
        floats = dtype if last else dtype.computed
        out = lines.empty(floats if dtype.is_floating_point else dtypes.int64)
        if divisor is not None and last:
            run("mean", lines.fold(x), out, options=(divisor,))
        else:
            run("sum", lines.fold(x), out)
        x = out.reshape(shapes.reduced(x.shape, group, keepdim=True))
    return x


def _spread(grad: Array, shape: Shape, dim: Dim, op: str) -> Array:
    """A reduced gradient, repeated over what was reduced."""
    dims = shapes.dim_set(dim, len(shape), op)
    return grad.reshape(shapes.reduced(shape, dims, keepdim=True)).expand(shape)


@op(
    twice="linear",
    samples=[*SAMPLES, sample((0, 3), dim=0), sample((3, 2), dtype=dtypes.float64)],
    wrong=WRONG,
)
def sum(x: Array, *, dim: Dim = None, keepdim: bool = False, dtype: DType | None = None) -> Array:
    """Sum of x over `dim`, or over everything; 0 for nothing."""
    dims = shapes.dim_set(dim, x.ndim, "sum")
    if dtype is not None and dtype is not x.dtype:
        x = x.cast(dtype)
    y = _total(x, dims).reshape(shapes.reduced(x.shape, dims, keepdim))
    return y if dtype is None or y.dtype is dtype else y.cast(dtype)


@sum.gradient
def sum_gradient(
    grad: Array, *, dim: Dim, shapes: tuple[Shape, ...], dtypes: tuple[DType, ...]
) -> Array:
    """1 for every element."""
    spread = _spread(grad, shapes[0], dim, "sum")
    return spread if spread.dtype is dtypes[0] else spread.cast(dtypes[0])


@op(
    samples=[*SAMPLES, sample((0, 3), dim=0), sample((3, 2), dtype=dtypes.float64)],
    wrong=[
        *WRONG,
        wrong(sample((3,)), "mean: x must be float32, float64 or bfloat16", dtype="int64"),
    ],
)
def mean(x: Array, *, dim: Dim = None, keepdim: bool = False, dtype: DType | None = None) -> Array:
    """Sum over `dim`, or over everything, divided by the number of elements; NaN for none."""
    dims = shapes.dim_set(dim, x.ndim, "mean")
    x = floats("mean", x, dtype)
    count = shapes.numel(tuple(x.shape[d] for d in dims))
    return _total(x, dims, count).reshape(shapes.reduced(x.shape, dims, keepdim))


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


def _correction(unbiased: bool | None, correction: float) -> float:
    return correction if unbiased is None else float(unbiased)


def _variance(
    name: str, x: Array, dim: Dim, keepdim: bool, correction: float, root: bool
) -> tuple[Array, Array]:
    """Variance (or its root) and mean; the mean keeps its dims."""
    lines = along(x.shape, shapes.dim_set(dim, x.ndim, name))
    x = floats(name, x)
    y, mean = lines.empty(x.dtype), lines.empty(x.dtype.computed)
    run("var", lines.fold(x), y, mean, sizes=(int(root),), options=(correction,))
    return y.reshape(shapes.reduced(x.shape, lines.dims, keepdim)), mean


def _variance_slope(
    name: str, grad: Array, x: Array, y: Array, mean: Array, dim: Dim, correction: float
) -> Array:
    """2 (x - mean) / (n - correction) * grad; for the root that over 2 y, and 0 where y is 0."""
    lines = along(x.shape, shapes.dim_set(dim, x.ndim, name))
    out = lines.whole(x.dtype)
    y, grad = lines.fold_result(y), lines.fold_result(grad)
    size = (int(name == "std"),)
    run("var_backward", lines.fold(x), y, mean, grad, out, sizes=size, options=(correction,))
    return lines.unfold(out)


_SPREAD_SAMPLES = (
    sample((3, 5)),
    sample((3, 5), dim=0),
    sample((2, 3, 4), dim=1, keepdim=True),
    sample((2, 3, 4), dim=(0, -1), correction=0),
    sample((2, 4, 3), dim=1, unbiased=False),
    sample((2, 1, 3, 2), dim=(1, 2), correction=2),
    sample((0, 3), dim=1),
)
_SPREAD_WRONG = (
    *WRONG,
    wrong(sample((3,)), "x must be float32, float64 or bfloat16", dtype="int64"),
)


def _composed_var(
    x: Tensor,
    *,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    correction: float = 1,
) -> Tensor:
    dims = dim_set(dim, x.ndim, "var")
    lowered = x - table.mean(x, dims, keepdim=True)
    left = numel(tuple(x.shape[d] for d in dims)) - _correction(unbiased, correction)
    return table.sum(lowered * lowered, dims, keepdim=keepdim) / max(0.0, left)


def _composed_std(x: Tensor, **options: Any) -> Tensor:
    variance = _composed_var(x, **options)
    flat = variance == 0  # the slope of the root there is 0 by decree
    return table.where(flat, 0.0, table.sqrt(table.where(flat, 1.0, variance)))


@op(
    saves=("x", "y", "mean"),
    outputs=("y", "mean"),
    composed=_composed_var,
    twice="composed",
    samples=_SPREAD_SAMPLES,
    wrong=_SPREAD_WRONG,
)
def var(
    x: Array,
    *,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    correction: float = 1,
) -> tuple[Array, Array]:
    """Sum of (x - mean) squared over n - correction, in two passes; NaN where that is 0 / 0."""
    c = _correction(unbiased, correction)
    return _variance("var", x, dim, keepdim, c, root=False)


@var.gradient
def var_gradient(
    grad: Array,
    *,
    x: Array,
    y: Array,
    mean: Array,
    dim: Dim,
    unbiased: bool | None,
    correction: float,
) -> Array:
    """2 (x - mean) / (n - correction)."""
    c = _correction(unbiased, correction)
    return _variance_slope("var", grad, x, y, mean, dim, c)


@op(
    saves=("x", "y", "mean"),
    outputs=("y", "mean"),
    composed=_composed_std,
    twice="composed",
    samples=[sample(distinct(one.inputs[0].shape), **one.options) for one in _SPREAD_SAMPLES],
    wrong=_SPREAD_WRONG,
)
def std(
    x: Array,
    *,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    correction: float = 1,
) -> tuple[Array, Array]:
    """Square root of var."""
    c = _correction(unbiased, correction)
    return _variance("std", x, dim, keepdim, c, root=True)


@std.gradient
def std_gradient(
    grad: Array,
    *,
    x: Array,
    y: Array,
    mean: Array,
    dim: Dim,
    unbiased: bool | None,
    correction: float,
) -> Array:
    """(x - mean) / (n - correction) / std, and 0 where std is 0."""
    c = _correction(unbiased, correction)
    return _variance_slope("std", grad, x, y, mean, dim, c)
