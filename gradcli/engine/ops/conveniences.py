"""Short names for what other ops do: shapes taken from another tensor, at least so many dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine.function import function
from gradcli.engine.ops.creation import full, zeros
from gradcli.engine.ops.elementwise import sub
from gradcli.engine.ops.extreme import amax
from gradcli.engine.ops.join import cat
from gradcli.engine.ops.movement import expand, getitem, reshape, view
from gradcli.engine.ops.rearrange import diagonal
from gradcli.engine.ops.reduce import sum as total
from gradcli.engine.ops.scatter import scatter_add
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, ShapeError

function("concat", method=False)(cat)


@function()
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of another tensor."""
    return view(input, *other.shape)


@function()
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements in the shape of another tensor."""
    result: Tensor = reshape(input, other.shape)
    return result


@function()
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements in the type of another tensor."""
    result: Tensor = input.to(other.dtype)
    return result


@function(method=False)
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All expanded to their common shape, as views."""
    shape: tuple[int, ...] = ()
    for x in tensors:
        shape = shapes.broadcast(shape, x.shape, "broadcast_tensors")
    return tuple(expand(x, shape) for x in tensors)


@function(method=False)
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors side by side; a vector is a column."""
    return cat([reshape(x, (x.numel(), 1)) if x.ndim < 2 else x for x in tensors], 1)


@function()
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    if input.ndim != 2:
        raise ShapeError(f"trace: needs a matrix, got shape {input.shape}")
    result: Tensor = total(diagonal(input))
    return result


@function()
def diff(input: Tensor, n: int = 1, dim: int = -1) -> Tensor:
    """Each element minus the one before it along `dim`, n times over."""
    if input.ndim == 0:
        raise ShapeError("diff: needs 1 or more dimensions, got shape ()")
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise OptionError(f"diff: n must be a whole number from 0, got {n!r}")
    d = shapes.dim_index(dim, input.ndim, "diff")
    front: tuple[Any, ...] = (slice(None),) * d
    for _ in range(n):
        later = getitem(input, index=(*front, slice(1, None)))
        input = sub(later, getitem(input, index=(*front, slice(None, later.shape[d]))))
    return input


@function()
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each whole number from 0 on occurs; or the sum of its weights."""
    if input.ndim != 1 or input.is_floating_point():
        raise DTypeError(f"bincount: needs whole numbers in 1 dimension, got {input!r:.60}")
    size = max(minlength, int(amax(input).item()) + 1 if input.numel() else 0)
    if weights is None:
        weights = full(input.shape, 1, dtype=dtypes.int64)
    elif weights.dtype is not dtypes.float32:
        weights = weights.to(dtypes.float64)
    counts: Tensor = scatter_add(zeros(size, dtype=weights.dtype), 0, input.long(), weights)
    return counts
