"""Running sums, products and extremes along a dimension, and differences of neighbours."""

from __future__ import annotations

from collections.abc import Callable

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine import table
from gradcli.engine.array import Array, run
from gradcli.engine.composite import function
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Whole
from gradcli.engine.op import op
from gradcli.engine.ops.along import along
from gradcli.engine.ops.creation.creation import zeros
from gradcli.engine.ops.index.slices import part_along
from gradcli.engine.ops.shape.reshape import own_memory
from gradcli.engine.result import Sorted
from gradcli.engine.sample import LINES, distinct, none, sample, with_numbers, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import ShapeError

SAMPLES = (*LINES, sample((3, 2), dim=0, dtype=dtypes.float64))


def _as_scanned(x: Array, dtype: DType | None) -> Array:
    """As torch adds and multiplies: whole numbers and bools as int64."""
    element_type = dtype or (x.dtype if x.dtype.is_floating_point else dtypes.int64)
    return x if x.dtype is element_type else x.cast(element_type)


def _scan(kernel: str, dim: int, *arrays: Array, from_end: bool = False) -> Array:
    shape = arrays[0].shape
    if not shape:
        return _scan(kernel, 0, *(x.reshape((1,)) for x in arrays)).reshape(())
    lines = along(shape, (shapes.dim_index(dim, len(shape), kernel),))
    out = lines.whole(arrays[0].dtype)
    run(kernel, *(lines.fold(x) for x in arrays), out, sizes=(from_end,))
    return lines.unfold(out)


@op(double_backward="linear", samples=SAMPLES)
def cumsum(input: Array, *, dim: int, dtype: DType | None = None) -> Array:
    """The sum of each element and all before it along `dim`."""
    shapes.dim_index(dim, input.ndim, "cumsum")
    return _scan("cumsum", dim, _as_scanned(input, dtype))


@cumsum.gradient
def cumsum_gradient(grad: Array, *, dim: int, dtypes: tuple[DType, ...]) -> Array:
    """An element is part of every sum from its own on, so the same is done from the end."""
    slope = _scan("cumsum", dim, grad, from_end=True)
    return slope if slope.dtype is dtypes[0] else slope.cast(dtypes[0])


def _doubling(x: Tensor, d: int, join: Callable[..., Tensor]) -> Tensor:
    """Each slice joined with all before it in log2(n) rounds: by 1, 2, 4, ... elements."""
    size, shift = x.shape[d] if x.ndim else 1, 1
    while shift < size:
        later = part_along(x, d, slice(shift, None))
        joined = join(later, part_along(x, d, slice(size - shift)))
        x = table.cat([part_along(x, d, slice(shift)), joined], d)
        shift *= 2
    return x


def _decomposed_cumprod(input: Tensor, *, dim: int, dtype: DType | None = None) -> Tensor:
    x = input if dtype is None else input.to(dtype)
    return own_memory(_doubling(x, shapes.dim_index(dim, x.ndim, "cumprod"), table.mul), input)


@op(
    saves=("input", "y"),
    decomposition=_decomposed_cumprod,
    double_backward="decomposition",
    samples=SAMPLES,
)
def cumprod(input: Array, *, dim: int, dtype: DType | None = None) -> Array:
    """The product of each element and all before it along `dim`."""
    shapes.dim_index(dim, input.ndim, "cumprod")
    return _scan("cumprod", dim, _as_scanned(input, dtype))


@cumprod.gradient
def cumprod_gradient(grad: Array, *, input: Array, y: Array, dim: int) -> Array:
    """The product of all before it, times what it is part of; no division, so 0 may be there."""
    x = input if input.dtype is grad.dtype else input.cast(grad.dtype)
    slope = _scan("cumprod_backward", dim, x, y, grad)
    return slope if slope.dtype is input.dtype else slope.cast(input.dtype)


@function(
    samples=[
        sample((3, 5)),
        sample((4, 2), n=2, dim=0),
        sample((3,), n=0),
        sample((2, 4, 1), (2, 1, 1), (2, 2, 1), dim=1),
        sample((3,), none(), (1,), n=2),
        sample((0, 3), dim=0),
    ],
    wrong=[wrong(sample(()), "needs 1 or more dimensions, got shape ()")],
)
def diff(
    input: Tensor,
    n: Whole = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Each element minus the one before it along `dim`, n times over; first, ends are joined on."""
    if input.ndim == 0:
        raise ShapeError("diff: needs 1 or more dimensions, got shape ()")
    d = shapes.dim_index(dim, input.ndim, "diff")
    if n and (prepend is not None or append is not None):
        input = table.cat([x for x in (prepend, input, append) if x is not None], d)
    for _ in range(min(n, input.shape[d])):  # then nothing is left
        later = part_along(input, d, slice(1, None))
        input = table.sub(later, part_along(input, d, slice(later.shape[d])))
    return input if n else table.clone(input)


_RUNS = with_numbers(distinct, LINES)


def _cumulative(name: str, input: Tensor, dim: int, join: Callable[..., Tensor]) -> Sorted:
    d = shapes.dim_index(dim, input.ndim, name)
    if not input.ndim:
        return Sorted(input.clone(), zeros(dtype=dtypes.int64))
    x = input.detach()
    best = table.eq(x, _doubling(x, d, join)) | table.ne(x, x)
    column = table.reshape(table.arange(x.shape[d]), (x.shape[d], *(1,) * (x.ndim - d - 1)))
    indices = _doubling(table.where(best, table.expand(column, x.shape), 0), d, table.maximum)
    return Sorted(table.gather(input, d, indices), indices)


@function(samples=_RUNS)
def cummax(input: Tensor, dim: int) -> Sorted:
    """The largest element so far along `dim`, and the index of its last occurrence; NaN wins."""
    return _cumulative("cummax", input, dim, table.maximum)


@function(samples=_RUNS)
def cummin(input: Tensor, dim: int) -> Sorted:
    """The smallest element so far along `dim`, and the index of its last occurrence; NaN wins."""
    return _cumulative("cummin", input, dim, table.minimum)
