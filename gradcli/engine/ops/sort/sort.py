"""Elements in order: sort, topk and what follows from them, and places in sorted numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shape_rules
from gradcli.engine import table
from gradcli.engine.array import Array, empty, full, run
from gradcli.engine.composite import function
from gradcli.engine.dtype import of_scalar, promote, promote_weak
from gradcli.engine.kind import Kind, Operand
from gradcli.engine.op import Op, declare_op
from gradcli.engine.ops.creation.creation import full as full_tensor
from gradcli.engine.ops.creation.creation import tensor
from gradcli.engine.ops.index.scatter import ADD, put, scatter_add
from gradcli.engine.ops.index.slices import narrow, select
from gradcli.engine.result import Sorted
from gradcli.engine.sample import distinct, index, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, RangeError, ShapeError


def _ordered(x: Array, d: int, k: int, descending: bool) -> tuple[Array, Array]:
    """The first k along d in order, and their places."""
    back = [i for i in range(x.ndim) if i != d] + [d] * (x.ndim > 0)
    moved = x.permute(back)
    size = x.shape[d] if x.ndim else 1
    rows = moved.contiguous().reshape((shape_rules.numel(moved.shape[:-1]), size))
    values, places = (empty((rows.shape[0], k), t) for t in (x.dtype, dtypes.int64))
    run("sort", rows, values, places, sizes=(int(descending),))
    shape = (*moved.shape[:-1], k) if x.ndim else ()
    order = [back.index(i) for i in range(x.ndim)]
    return values.reshape(shape).permute(order), places.reshape(shape).permute(order)


_OPERAND = Kind.of(Operand)


class _SortOp(Op[Sorted]):
    """Gives values and indices by name; also takes torch's keyword `stable` first."""

    def __call__(self, *args: Any, **named: Any) -> Sorted:
        """Values and indices."""
        return Sorted(*super().__call__(*args, **named))


def _sort(
    x: Array, *, dim: int = -1, descending: bool = False, stable: bool = True
) -> tuple[Array, Array]:
    """The elements along `dim` in order, and their places; stable, and a NaN is the largest."""
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
    wrong=[wrong(sample((3,), dim=1), "sort: dim 1 is outside -1..0")],
)
declare_op(sort)


def _back(grads: tuple[Array | None, ...], indices: Array, shape: Shape, dim: int) -> Array | None:
    """Each value's gradient to the place it came from."""
    if grads[0] is None:
        return None
    d = shape_rules.dim_index(dim, len(shape), "sort")
    return put(full(shape, 0, grads[0].dtype), indices, grads[0], d, ADD, "sort")


def _back_again(
    grads: tuple[Tensor | None, ...], *, indices: Tensor, shapes: tuple[Shape], dim: int
) -> Tensor | None:
    """To the places the values came from."""
    if grads[0] is None:
        return None
    nothing = full_tensor(shapes[0], 0, dtype=grads[0].dtype)
    return scatter_add(nothing, dim, indices, grads[0])


sort.gradient_graph(_back_again)


@sort.gradient
def sort_gradient(
    grads: tuple[Array | None, ...], *, indices: Array, shapes: tuple[Shape], dim: int
) -> Array | None:
    """To the places the values came from."""
    return _back(grads, indices, shapes[0], dim)


def _topk(
    x: Array, *, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Array, Array]:
    """The k largest (smallest) along `dim` in order, and their places; of equal ones the first."""
    del sorted  # always
    d = shape_rules.dim_index(dim, x.ndim, "topk")
    size = x.shape[d] if x.ndim else 1
    if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k <= size:
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
        sample(distinct((0, 3)), k=2),
    ],
    wrong=[
        wrong(sample((3,), k=4), "k must be a whole number from 0 to 3, got 4"),
        wrong(sample((3,), k=1, dim=2), "topk: dim 2 is outside -1..0"),
    ],
)
declare_op(topk)


topk.gradient_graph(_back_again)


@topk.gradient
def topk_gradient(
    grads: tuple[Array | None, ...], *, indices: Array, shapes: tuple[Shape], dim: int
) -> Array | None:
    """To the places the values came from."""
    return _back(grads, indices, shapes[0], dim)


# -- composed of these ---------------------------------------------------------------------------


@function(
    samples=[
        sample(distinct((3, 5))),
        sample(distinct((2, 4, 3)), dim=-2, descending=True),
        sample(index((2, 9), 4), stable=True),
        sample(()),
        sample((1, 0), dim=0),
    ],
    why="a place does not change smoothly",
)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The places of the elements along `dim` in their order."""
    found = sort(input, dim=dim, descending=descending, stable=stable)
    return found.indices


@function(
    samples=[sample(distinct((5, 3))), sample(distinct((4, 1, 2))), sample(()), sample((0, 3))]
)
def msort(input: Tensor) -> Tensor:
    """The elements along the first dimension in order."""
    found = sort(input, dim=0)
    return found.values


@function(
    samples=[
        sample(distinct((3, 5)), k=2),
        sample(distinct((4, 3)), k=4, dim=0),
        sample(distinct((2, 5, 1)), k=3, dim=-2, keepdim=True),
        sample((), k=1),
        sample((0, 3), k=2, dim=1),
    ]
)
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th smallest along `dim`, counted from 1, and its place."""
    d = shape_rules.dim_index(dim, input.ndim, "kthvalue")
    size = input.shape[d] if input.ndim else 1
    if not 1 <= k <= size:
        raise RangeError(f"kthvalue: k {k} is outside 1..{size}")
    if not input.ndim:
        return Sorted(*sort(input))
    found = topk(input, k, d, False) if k < size else sort(input, dim=d)
    if keepdim:
        return Sorted(*(narrow(part, d, k - 1, 1) for part in found))
    return Sorted(*(select(part, d, k - 1) for part in found))


class _SearchOp(Op[Tensor]):
    """Takes a number as well, and promotes element types."""

    takes = Operand

    def _bind(
        self, args: Sequence[Any], named: dict[str, Any]
    ) -> tuple[list[Tensor | None], dict[str, Any]]:
        if len(args) == 2 and isinstance(args[0], Tensor) and not isinstance(args[1], Tensor):
            number = _OPERAND.taken_as(self.name, self.inputs[1], args[1])
            common = promote_weak(args[0].dtype, of_scalar(number))
            args = (args[0], tensor(number, dtype=common))
        (rows, values), options = super()._bind(args, named)
        assert rows is not None and values is not None
        if rows.dtype is not values.dtype:
            dtype = promote(rows.dtype, values.dtype)
            rows, values = (table.to(x, dtype) for x in (rows, values))
        return [rows, values], options


def _searchsorted(
    sorted_sequence: Array,
    input: Array,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
) -> Array:
    """Where numbers would be put into sorted rows: before equal ones, or behind (`right`)."""
    rows, x = sorted_sequence, input
    if side not in (None, "left", "right") or (side == "left" and right):
        raise OptionError(f"searchsorted: side must be 'left' or 'right', got {side!r:.60}")
    if not rows.ndim or (rows.ndim > 1 and rows.shape[:-1] != x.shape[:-1]):
        raise ShapeError(
            f"searchsorted: rows {rows.shape} do not fit values {x.shape} outside the last dim"
        )
    many = shape_rules.numel(rows.shape[:-1])
    per_row = x.shape[-1] if rows.ndim > 1 else x.numel
    places = empty(x.shape, dtypes.int64)
    shape = (many, per_row)
    ordered = rows.contiguous().reshape((many, rows.shape[-1]))
    behind = int(right or side == "right")
    run(
        "searchsorted",
        ordered,
        x.contiguous().reshape(shape),
        places.reshape(shape),
        sizes=(behind,),
    )
    return places.cast(dtypes.int32) if out_int32 else places


searchsorted = _SearchOp(
    _searchsorted,
    name="searchsorted",
    samples=[
        sample((7,), (2, 3)),
        sample((7,), (), right=True),
        sample((2, 3, 5), (2, 3, 4), side="right"),
        sample((1,), (3,), out_int32=True),
        sample((0,), (3,)),
        sample((2, 4), (2, 0)),
    ],
    wrong=[
        wrong(sample((2, 3), (3, 3)), "rows (2, 3) do not fit values (3, 3)"),
        wrong(sample((3,), (3,), side="up"), "side must be 'left' or 'right', got 'up'"),
    ],
    why="a place does not change smoothly",
)
declare_op(searchsorted, method=False)


@function(
    samples=[
        sample((2, 3), (5,)),
        sample(index((3, 4), 6), index((1,), 6), right=True),
        sample((), (4,), out_int32=True),
        sample((2, 0), (3,)),
        sample((3,), (0,)),
    ],
    why="a place does not change smoothly",
    method=False,
)
def bucketize(
    input: Tensor | float, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """The number of boundaries below each number, or with `right` those not above it."""
    if boundaries.ndim != 1:
        raise ShapeError(f"bucketize: boundaries must be a vector, got shape {boundaries.shape}")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)
