"""Short names for what other ops do: shapes taken from another tensor, at least so many dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine.composite import FUNCTIONS, function
from gradcli.engine.kind import Whole
from gradcli.engine.ops.creation.creation import full, zeros
from gradcli.engine.ops.elementwise.elementwise import sub
from gradcli.engine.ops.index.scatter import scatter_add
from gradcli.engine.ops.reduce.extreme import amax, amin
from gradcli.engine.ops.reduce.reduce import sum as total
from gradcli.engine.ops.shape.join import cat
from gradcli.engine.ops.shape.movement import clone, expand, getitem, reshape, view
from gradcli.engine.ops.shape.rearrange import diagonal
from gradcli.engine.sample import index, none, sample, truth, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, RangeError, ShapeError

function("concat", method=False, samples=FUNCTIONS["cat"].samples)(cat)


# Cut into more dimensions, which memory of every layout can be.
@function(
    shares="view",
    samples=[
        sample((6,), (2, 3)),
        sample((4, 6), (4, 2, 3)),
        sample((), (1,)),
        sample((0, 2), (0, 2)),
    ],
)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of another tensor."""
    return view(input, *other.shape)


@function(
    shares="either",
    samples=[
        sample((3, 4), (2, 6)),
        sample((2, 1, 3), (6,)),
        sample((), (1, 1)),
        sample((0, 2), (3, 0)),
    ],
)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements in the shape of another tensor."""
    result: Tensor = reshape(input, other.shape)
    return result


@function(
    shares="either",
    samples=[
        sample((3, 5), (2,)),
        sample(index((2, 1), 9), (0,)),
        sample(truth((4,)), (3,)),
        sample((2, 3), truth(())),
    ],
)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements in the type of another tensor: input.to(other.dtype)."""
    result: Tensor = input.to(other.dtype)
    return result


@function(
    shares="repeats",
    method=False,
    samples=[sample((3, 1), (1, 4)), sample((2, 3), (3,), ()), sample((1,), (0, 3)), sample((4,))],
    wrong=[wrong(sample((3,), (4,)), "shapes (3,) and (4,) do not broadcast")],
)
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All expanded to their common shape, as views."""
    shape: tuple[int, ...] = ()
    for x in tensors:
        shape = shapes.broadcast(shape, x.shape, "broadcast_tensors")
    return tuple(expand(x, shape) for x in tensors)


@function(
    method=False,
    samples=[
        sample((3, 2), (3, 1)),
        sample((3,), (3, 2), (3,)),
        sample((), ()),
        sample((2, 3, 4), (2, 1, 4)),
        sample((0,), (0, 2)),
    ],
)
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors side by side; a vector is a column."""
    return cat([reshape(x, (x.numel(), 1)) if x.ndim < 2 else x for x in tensors], 1)


@function(
    samples=[sample((3, 5)), sample((4, 1)), sample((0, 3))],
    wrong=[wrong(sample((3,)), "needs a matrix, got shape (3,)")],
)
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    if input.ndim != 2:
        raise ShapeError(f"trace: needs a matrix, got shape {input.shape}")
    result: Tensor = total(diagonal(input))
    return result


@function(
    samples=[
        sample((3, 5)),
        sample((4, 2), n=2, dim=0),
        sample((3,), n=0),
        sample((2, 4, 1), (2, 1, 1), (2, 2, 1), dim=1),
        sample((3,), none(), (1,), n=2),
        sample((0, 3), dim=0),
    ],
    wrong=[
        wrong(sample(()), "needs 1 or more dimensions, got shape ()"),
        wrong(sample((3,), n=-1), "n must be a whole number >= 0, got -1"),
        wrong(sample((3,), dim=1), "dim 1 is outside -1..0"),
    ],
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
        input = cat([x for x in (prepend, input, append) if x is not None], d)
    front: tuple[Any, ...] = (slice(None),) * d
    for _ in range(min(n, input.shape[d])):  # then nothing is left
        later = getitem(input, index=(*front, slice(1, None)))
        input = sub(later, getitem(input, index=(*front, slice(None, later.shape[d]))))
    return input if n else clone(input)


@function(
    samples=[
        sample(index((6,), 4), (6,)),
        sample(index((7,), 5)),
        sample(index((5,), 3), minlength=6),
        sample(index((1,), 2), index((1,), 9), minlength=1),
        sample(index((0,), 1), minlength=2),
    ],
    wrong=[
        wrong(sample((3,)), "needs whole numbers in 1 dimension"),
        wrong(sample(index((2, 1), 3)), "in 1 dimension, got gradcli.int64 (2, 1)"),
        wrong(sample(truth((3,))), "needs whole numbers in 1 dimension"),
        wrong(sample(index((3,), 3), (2,)), "(2,) weights for (3,) numbers"),
        wrong(sample(index((3,), 0, -2)), "the numbers must be at least 0"),
    ],
)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: Whole = 0) -> Tensor:
    """How often each whole number from 0 on occurs; or the sum of its weights."""
    if input.ndim != 1 or input.dtype.kind != "int":
        raise DTypeError(
            f"bincount: needs whole numbers in 1 dimension, got {input.dtype} {input.shape}"
        )
    if weights is not None and weights.shape != input.shape:
        raise ShapeError(f"bincount: {weights.shape} weights for {input.shape} numbers")
    if input.numel() and amin(input).item() < 0:
        raise RangeError("bincount: the numbers must be at least 0")
    size = max(minlength, int(amax(input).item()) + 1 if input.numel() else 0)
    if weights is None:
        weights = full(input.shape, 1, dtype=dtypes.int64)
    elif weights.dtype is not dtypes.float32:
        weights = weights.to(dtypes.float64)
    counts: Tensor = scatter_add(zeros(size, dtype=weights.dtype), 0, input.long(), weights)
    return counts
