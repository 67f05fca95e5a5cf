"""Composed of sorting: medians, running extremes, unique elements; sums and means without NaN."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine.composite import function
from gradcli.engine.dtype import DType
from gradcli.engine.ops.creation.creation import full, zeros
from gradcli.engine.ops.creation.ranges import arange
from gradcli.engine.ops.elementwise.elementwise import clamp, eq, le, maximum, minimum, ne
from gradcli.engine.ops.index.index_select import index_select
from gradcli.engine.ops.index.masks import true_places
from gradcli.engine.ops.index.scatter import gather, scatter, scatter_add
from gradcli.engine.ops.index.slices import getitem
from gradcli.engine.ops.index.where import where
from gradcli.engine.ops.reduce.extreme import amax, amin
from gradcli.engine.ops.reduce.reduce import Dim
from gradcli.engine.ops.reduce.reduce import sum as total
from gradcli.engine.ops.reduce.scan import cumsum
from gradcli.engine.ops.shape.expand import expand
from gradcli.engine.ops.shape.join import cat
from gradcli.engine.ops.shape.reshape import reshape
from gradcli.engine.ops.sort.sort import sort
from gradcli.engine.result import Sorted
from gradcli.engine.sample import distinct, index, sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, ShapeError

# -- without NaN -----------------------------------------------------------------------------------


_SUMS = [
    sample((3, 5)),
    sample((2, 3, 4), dim=(0, -1), keepdim=True),
    sample((4, 1), dim=0, dtype=dtypes.float64),
    sample((0, 3), dim=1),
]


@function(samples=_SUMS)
def nansum(
    input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The sum over `dim`, or over everything, in which NaN counts as 0."""
    x = input if dtype is None else input.to(dtype)
    return total(where(ne(x, x), 0, x) if x.is_floating_point() else x, dim, keepdim)


@function(
    samples=_SUMS,
    wrong=[
        wrong(sample((2, 3)), "nanmean: input must be float32, float64 or bfloat16", dtype="int64")
    ],
)
def nanmean(
    input: Tensor, dim: Dim = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """The mean over `dim`, or over everything, of what is not NaN."""
    x = input if dtype is None else input.to(dtype)
    if not x.is_floating_point():
        raise DTypeError(f"nanmean: input must be float32, float64 or bfloat16, got {x.dtype}")
    count = total(eq(x, x), dim, keepdim)
    return nansum(x, dim, keepdim) / count.to(x.dtype)


# -- medians ---------------------------------------------------------------------------------------


_MEDIANS = [
    sample(distinct((3, 5))),
    sample(distinct((2, 4)), dim=1),
    sample(distinct((2, 4, 3)), dim=-2, keepdim=True),
    sample(distinct((1, 6))),
    sample((), dim=0),
    sample((0, 3)),
    sample((0, 3), dim=1),
]


def _median(name: str, input: Tensor, dim: int, keepdim: bool, ignore_nan: bool) -> Sorted:
    """The lower of the two in the middle, and its place; a NaN wins unless it is to be ignored."""
    d = shapes.dim_index(dim, input.ndim, name)
    if not input.ndim:
        return Sorted(*sort(input))
    size = input.shape[d]
    if not size:
        raise ShapeError(f"{name}: dimension {d} of {input.shape} has no elements")
    order = sort(input, dim=d)
    counts = total(eq(input, input), d, keepdim=True)
    middle = clamp(counts - 1, min=0) // 2
    if not ignore_nan:  # NaN lie behind all numbers: the first of them
        middle = where(le(size, counts), middle, counts)
    made = [gather(part, d, middle) for part in order]
    shape = shapes.reduced(input.shape, (d,), keepdim)
    return Sorted(*(reshape(part, shape) for part in made))


def _median_of_all(name: str, input: Tensor, ignore_nan: bool) -> Tensor:
    """Equal elements share the gradient; of no elements it is NaN."""
    flat = reshape(input, (input.numel(),))
    if not input.numel() and input.is_floating_point():
        return total(flat) + nan
    found = _median(name, flat.detach(), 0, False, ignore_nan).values
    if not input.is_floating_point():
        return found
    chosen = eq(flat, found) | (ne(flat, flat) & ne(found, found))
    return amax(where(chosen, flat, -inf))


@function(samples=_MEDIANS, tuple_if=["dim"])
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | Sorted:
    """The lower of the two elements in the middle of all; or along `dim`, and its place."""
    if dim is None:
        return _median_of_all("median", input, False)
    return _median("median", input, dim, keepdim, False)


@function(
    tuple_if=["dim"],
    samples=_MEDIANS,
    wrong=[wrong(sample((0, 3), dim=0), "nanmedian: dimension 0 of (0, 3) has no elements")],
)
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | Sorted:
    """The median of what is not NaN; or along `dim`, and its place."""
    if dim is None:
        return _median_of_all("nanmedian", input, True)
    return _median("nanmedian", input, dim, keepdim, True)


# -- running extremes ------------------------------------------------------------------------------


_RUNS = [
    sample(distinct((3, 5)), dim=1),
    sample(distinct((2, 6, 3)), dim=-2),
    sample(distinct((4, 1)), dim=-1),
    sample((), dim=0),
    sample((0, 3), dim=0),
]


def _running(x: Tensor, d: int, join: Callable[..., Tensor]) -> Tensor:
    """Each slice joined with all before it, by shifts of 1, 2, 4, ..."""
    size, shift, front = x.shape[d], 1, (slice(None),) * d
    while shift < size:
        later = getitem(x, index=(*front, slice(shift, None)))
        joined = join(later, getitem(x, index=(*front, slice(None, size - shift))))
        x = cat([getitem(x, index=(*front, slice(None, shift))), joined], d)
        shift *= 2
    return x


def _cumulative(name: str, input: Tensor, dim: int, join: Callable[..., Tensor]) -> Sorted:
    d = shapes.dim_index(dim, input.ndim, name)
    if not input.ndim:
        return Sorted(input.clone(), zeros(dtype=dtypes.int64))
    x = input.detach()
    best = eq(x, _running(x, d, join)) | ne(x, x)
    column = reshape(arange(x.shape[d]), (x.shape[d], *(1,) * (x.ndim - d - 1)))
    places = _running(where(best, expand(column, x.shape), 0), d, maximum)
    return Sorted(gather(input, d, places), places)


@function(samples=_RUNS, wrong=[wrong(sample((2, 3), dim=2), "cummax: dim 2 is outside -2..1")])
def cummax(input: Tensor, dim: int) -> Sorted:
    """The largest element so far along `dim`, and the place of its last occurrence; NaN wins."""
    return _cumulative("cummax", input, dim, maximum)


@function(samples=_RUNS)
def cummin(input: Tensor, dim: int) -> Sorted:
    """The smallest element so far along `dim`, and the place of its last occurrence; NaN wins."""
    return _cumulative("cummin", input, dim, minimum)


@function(
    samples=[
        sample(distinct((3, 5))),
        sample(distinct((2, 3, 4)), dim=1, keepdim=True),
        sample(distinct((4, 1)), dim=-1),
        sample(()),
        sample((0, 3), dim=1),
    ]
)
def aminmax(
    input: Tensor, *, dim: int | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """The smallest and the largest along `dim`, or of everything."""
    over = () if dim is None else dim
    return amin(input, over, keepdim), amax(input, over, keepdim)


# -- unique elements -------------------------------------------------------------------------------


def _groups(flat: Tensor) -> tuple[Tensor, Tensor]:
    """Neighbours that are equal: where each group begins, and the number of each one's group."""
    first = full((min(flat.numel(), 1),), True)
    new = cat([first, ne(flat[1:], flat[:-1])], 0)
    return true_places(new), cumsum(new, 0) - 1


def _grouped(
    values: Tensor, inverse: Tensor, number: Tensor, wanted: tuple[bool, bool]
) -> Tensor | tuple[Tensor, ...]:
    """The values, and what else is wanted: which each one is, and how many there are."""
    nothing = zeros(values.numel(), dtype=dtypes.int64)
    counts = scatter_add(nothing, 0, number, full(number.shape, 1))
    more = tuple(part for part, want in zip((inverse, counts), wanted, strict=True) if want)
    return (values, *more) if more else values


@function(
    tuple_if=["return_inverse", "return_counts"],
    samples=[
        sample(distinct((3, 5))),
        sample(index((4, 5), 4), return_inverse=True, return_counts=True),
        sample(index((2, 1, 7), 3), return_counts=True),
        sample((0, 3), return_inverse=True),
    ],
    wrong=[wrong(sample((2, 3), dim=0), "unique: dim must be None, got 0")],
)
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The different elements in ascending order; also which each element is, and how many are."""
    del sorted  # always
    if dim is not None:
        raise OptionError(f"unique: dim must be None, got {dim!r}; slices are not compared")
    order = sort(reshape(input, (input.numel(),)), dim=0)
    begin, number = _groups(order.values)
    inverse = scatter(zeros(input.numel(), dtype=dtypes.int64), 0, order.indices, number)
    values = index_select(order.values, 0, begin)
    shaped = reshape(inverse, input.shape)
    return _grouped(values, shaped, number, (return_inverse, return_counts))


@function(
    tuple_if=["return_inverse", "return_counts"],
    samples=[
        sample(distinct((3, 5))),
        sample(index((4, 5), 2), return_inverse=True, return_counts=True),
        sample(index((1, 9), 3), return_counts=True),
        sample((0,), return_inverse=True),
    ],
)
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False
) -> Tensor | tuple[Tensor, ...]:
    """The elements without those equal to the one before; also which each is, and how many are."""
    flat = reshape(input, (input.numel(),))
    begin, number = _groups(flat)
    values = index_select(flat, 0, begin)
    inverse = reshape(number, input.shape)
    return _grouped(values, inverse, number, (return_inverse, return_counts))
