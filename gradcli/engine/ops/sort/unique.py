"""Elements that differ."""

from __future__ import annotations

from gradcli.engine import dtype as dtypes
from gradcli.engine.composite import function
from gradcli.engine.ops.creation.creation import full, zeros
from gradcli.engine.ops.elementwise.comparison import ne
from gradcli.engine.ops.index.index_select import index_select
from gradcli.engine.ops.index.masks import true_places
from gradcli.engine.ops.index.scatter import scatter, scatter_add
from gradcli.engine.ops.reduce.scan import cumsum
from gradcli.engine.ops.shape.join import cat
from gradcli.engine.ops.shape.reshape import reshape
from gradcli.engine.ops.sort.sort import sort
from gradcli.engine.sample import distinct, index, sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError


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
