"""Which elements or slices differ, and which of them are among others."""

from __future__ import annotations

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine import table
from gradcli.engine.composite import function
from gradcli.engine.kind import Number
from gradcli.engine.ops.creation.creation import full, zeros
from gradcli.engine.ops.elementwise.family import matched
from gradcli.engine.ops.index.masks import true_indices
from gradcli.engine.sample import distinct, index, sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, ShapeError

# -- unique elements and slices --------------------------------------------------------------------


def _rows(name: str, input: Tensor, dim: int | None) -> Tensor:
    """What is compared, one a row: (n, 1) of all elements, or (n, m) of the slices along `dim`."""
    if dim is None:
        return table.reshape(input.detach(), (input.numel(), 1))
    d = shapes.dim_index(dim, input.ndim, name)
    if not input.ndim:
        raise ShapeError(f"{name}: a number has no dimension {dim}; leave dim out")
    slice_size = shapes.numel(input.shape[:d] + input.shape[d + 1 :])
    if not slice_size:
        raise ShapeError(f"{name}: the slices along dim {dim} of {input.shape} have no elements")
    return table.reshape(table.movedim(input.detach(), d, 0), (input.shape[d], slice_size))


def _numbers(changes: Tensor) -> Tensor:
    """Of each row the number of changes up to it; the first row has none."""
    start = zeros((1, *changes.shape[1:]), dtype=dtypes.bool_)
    return table.cumsum(table.cat([start, changes], 0), 0)


def _ranks(x: Tensor) -> tuple[Tensor, Tensor]:
    """The order in each column of (n, m), and of how many different elements each is above."""
    values, order = table.sort(x, dim=0)
    numbers = _numbers(table.ne(values[1:], values[:-1]))[: x.shape[0]]
    return order, table.scatter(zeros(x.shape, dtype=dtypes.int64), 0, order, numbers)


def _ranks_of_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    """The same of whole rows, of which the first elements count first.

    The ranks of two neighbouring columns become one number, until one column is left.
    """
    order, ranks = _ranks(x)
    while ranks.shape[1] > 1:
        even = ranks.shape[1] // 2 * 2
        order, both = _ranks(ranks[:, 0:even:2] * ranks.shape[0] + ranks[:, 1:even:2])
        ranks = table.cat([both, ranks[:, even:]], 1)
    return table.reshape(order, (x.shape[0],)), table.reshape(ranks, (x.shape[0],))


def _groups(
    input: Tensor, dim: int | None, order: Tensor | None, number: Tensor, asks: tuple[bool, bool]
) -> Tensor | tuple[Tensor, ...]:
    """The first of each group, and on request the group of each row and the sizes of groups.

    `number` is the group of each row; it ascends along `order`, or as the rows stand.
    """
    x = table.reshape(input, (input.numel(),)) if dim is None else input
    ascending = number if order is None else table.index_select(number, 0, order)
    first = full((min(number.numel(), 1),), True)
    begin = true_indices(table.cat([first, table.ne(ascending[1:], ascending[:-1])], 0))
    indices = begin if order is None else table.index_select(order, 0, begin)
    values = table.index_select(x, 0 if dim is None else dim, indices)
    counts = table.scatter_add(
        zeros(begin.numel(), dtype=dtypes.int64), 0, number, full(number.shape, 1)
    )
    inverse = table.reshape(number, input.shape) if dim is None else number
    more = tuple(part for part, ask in zip((inverse, counts), asks, strict=True) if ask)
    return (values, *more) if more else values


@function(
    tuple_if=["return_inverse", "return_counts"],
    samples=[
        sample(distinct((3, 5))),
        sample(index((4, 5), 4), return_inverse=True, return_counts=True),
        sample(index((2, 1, 7), 3), return_counts=True),
        sample((0, 3), return_inverse=True),
        sample(index((9, 3), 2), return_inverse=True, return_counts=True, dim=0),
        sample(index((2, 8, 2), 2), return_inverse=True, dim=-2),
        sample(distinct((2, 5)), dim=1),
        sample((0, 3), return_counts=True, dim=0),
    ],
    wrong=[
        wrong(sample((3, 0), dim=0), "the slices along dim 0 of (3, 0) have no elements"),
        wrong(sample((), dim=0), "a number has no dimension 0"),
    ],
)
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The different elements, or slices along `dim`, in ascending order.

    With them, on request, which of them each element or slice is, and how many are equal.
    """
    del sorted  # always
    order, number = _ranks_of_rows(_rows("unique", input, dim))
    return _groups(input, dim, order, number, (return_inverse, return_counts))


@function(
    tuple_if=["return_inverse", "return_counts"],
    samples=[
        sample(distinct((3, 5))),
        sample(index((4, 5), 2), return_inverse=True, return_counts=True),
        sample(index((1, 9), 3), return_counts=True),
        sample((0,), return_inverse=True),
        sample(index((9, 2), 2), return_inverse=True, return_counts=True, dim=0),
        sample(index((2, 1, 7), 2), return_counts=True, dim=-1),
        sample((0, 3), return_inverse=True, dim=0),
    ],
)
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The elements, or slices along `dim`, without those equal to the one before.

    With them, on request, which of them each element or slice is, and how many are equal.
    """
    rows = _rows("unique_consecutive", input, dim)
    changes = table.any(table.ne(rows[1:], rows[:-1]), 1)
    number = _numbers(changes)[: rows.shape[0]]
    return _groups(input, dim, None, number, (return_inverse, return_counts))


# -- membership ------------------------------------------------------------------------------------


@function(
    samples=[
        sample(index((3, 5), 6), index((4,), 6)),
        sample(index((2, 1, 4), 9), index((2, 2), 9), invert=True),
        sample(index((7,), 3), test_elements=1),
        sample(index((3,), 4), elements=2.0, assume_unique=True),
        sample((2, 3), (0,)),
        sample((0,), (3,)),
    ],
    wrong=[wrong(sample(elements=1, test_elements=2), "isin: elements or test_elements must be a")],
    why="the answer is true or false",
    method=False,
)
def isin(
    elements: Tensor | Number,
    test_elements: Tensor | Number,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Whether each element is among the others, or with `invert` whether it is not."""
    del assume_unique  # they are sorted in any case
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise DTypeError("isin: elements or test_elements must be a Tensor, got two numbers")
    x, among = matched("isin", elements, test_elements)
    rows = table.sort(table.reshape(among.detach(), (among.numel(),)), dim=0)[0]
    if not rows.numel():
        return full(x.shape, invert)
    indices = table.clamp(table.searchsorted(rows, x.detach()), max=rows.numel() - 1)
    nearest = table.reshape(
        table.index_select(rows, 0, table.reshape(indices, (indices.numel(),))), x.shape
    )
    return table.ne(x, nearest) if invert else table.eq(x, nearest)
