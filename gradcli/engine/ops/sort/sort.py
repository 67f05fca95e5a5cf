"""Elements in order: sort, topk and what follows from them."""

from __future__ import annotations

from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shape_rules
from gradcli.engine.array import Array, empty, full, run
from gradcli.engine.composite import function
from gradcli.engine.op import Op, declare_op
from gradcli.engine.ops.index.index_select import ADD
from gradcli.engine.ops.index.scatter import put_along, put_back
from gradcli.engine.result import Sorted
from gradcli.engine.sample import distinct, index, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import RangeError


def _ordered(x: Array, d: int, k: int, descending: bool) -> tuple[Array, Array]:
    """The first k along d in order, and their indices."""
    back = [i for i in range(x.ndim) if i != d] + [d] * (x.ndim > 0)
    in_order = d >= x.ndim - 1
    lines = x if in_order else x.permute(back)
    size = x.shape[d] if x.ndim else 1
    rows = lines.contiguous().reshape((shape_rules.numel(lines.shape[:-1]), size))
    values, indices = (empty((rows.shape[0], k), t) for t in (x.dtype, dtypes.int64))
    run("sort", rows, values, indices, sizes=(int(descending),))
    shape = (*lines.shape[:-1], k) if x.ndim else ()
    if in_order:
        return values.reshape(shape), indices.reshape(shape)
    order = [back.index(i) for i in range(x.ndim)]
    return values.reshape(shape).permute(order), indices.reshape(shape).permute(order)


class _SortOp(Op[Sorted]):
    """Gives values and indices by name; also takes torch's keyword `stable` first."""

    def __call__(self, *args: Any, **keywords: Any) -> Sorted:
        """Values and indices."""
        return Sorted(*super().__call__(*args, **keywords))


def _sort(
    x: Array, *, dim: int = -1, descending: bool = False, stable: bool = True
) -> tuple[Array, Array]:
    """The elements along `dim` in order, and their indices; stable, and a NaN is the largest."""
    del stable  # always
    d = shape_rules.dim_index(dim, x.ndim, "sort")
    return _ordered(x, d, x.shape[d] if x.ndim else 1, descending)


sort = _SortOp(
    _sort,
    name="sort",
    outputs=("values", "indices"),
    visible=2,
    saves="indices",
    samples=[
        sample(distinct((3, 5))),
        sample(distinct((3, 5)), dim=0, descending=True),
        sample(distinct((2, 3, 4)), dim=1),
        sample(distinct((2, 200)), dim=-1),
        sample(distinct((300, 1)), dim=0, descending=True),
        sample(distinct(())),
        sample(distinct((0, 3)), dim=1),
        sample(distinct((3, 0)), dim=1),
    ],
)
declare_op(sort)


def _topk(
    x: Array, *, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Array, Array]:
    """The k largest (smallest) along `dim` in order, and their indices; of equal ones the first."""
    del sorted  # always
    d = shape_rules.dim_index(dim, x.ndim, "topk")
    size = x.shape[d] if x.ndim else 1
    if not 0 <= k <= size:
        raise RangeError(f"topk: k must be a whole number from 0 to {size}, got {k!r}")
    if not x.ndim and k == 0:
        return empty((0,), x.dtype), empty((0,), dtypes.int64)
    return _ordered(x, d, k, largest)


topk = _SortOp(
    _topk,
    name="topk",
    outputs=("values", "indices"),
    visible=2,
    saves="indices",
    samples=[
        sample(distinct((3, 5)), k=2),
        sample(distinct((7, 3)), k=7, dim=0),
        sample(distinct((2, 300)), k=3, largest=False),
        sample(distinct((2, 90)), k=60, dim=1),
        sample(distinct((4, 1)), k=1),
        sample(distinct((3, 4)), k=0),
    ],
    wrong=[wrong(sample((3,), k=4), "k must be a whole number from 0 to 3, got 4")],
)
declare_op(topk)


@topk.gradient
@sort.gradient
def gradient_by_indices(
    grads: tuple[Array, ...], *, indices: Array, shapes: tuple[Shape], dim: int
) -> Array:
    """Each value's gradient to the index it came from."""
    d = shape_rules.dim_index(dim, len(shapes[0]), "sort")
    return put_along(full(shapes[0], 0, grads[0].dtype), indices, grads[0], d, ADD, "sort")


@topk.double_backward
@sort.double_backward
def double_backward_by_indices(
    grads: tuple[Tensor, ...], *, indices: Tensor, shapes: tuple[Shape], dim: int
) -> Tensor:
    """Each value's gradient to the index it came from."""
    return put_back(grads[0], indices, shapes[0], dim)


# -- composed of these ---------------------------------------------------------------------------


@function(
    samples=[
        sample(distinct((3, 5))),
        sample(distinct((2, 4, 3)), dim=-2, descending=True),
        sample(index((2, 9), 4), stable=True),
        sample(()),
        sample((1, 0), dim=0),
    ],
    why="an index does not change smoothly",
)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices of the elements along `dim` in their order."""
    result = sort(input, dim=dim, descending=descending, stable=stable)
    return result.indices


@function(
    samples=[sample(distinct((5, 3))), sample(distinct((4, 1, 2))), sample(()), sample((0, 3))]
)
def msort(input: Tensor) -> Tensor:
    """The elements along the first dimension in order."""
    result = sort(input, dim=0)
    return result.values
