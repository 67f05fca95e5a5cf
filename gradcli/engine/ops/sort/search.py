"""Indices in sorted numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shape_rules
from gradcli.engine import table
from gradcli.engine.array import Array, empty, run
from gradcli.engine.composite import function
from gradcli.engine.dtype import of_scalar, promote, promote_weak
from gradcli.engine.kind import Kind, Operand
from gradcli.engine.op import Op, declare_op
from gradcli.engine.ops.creation.creation import tensor
from gradcli.engine.sample import index, sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError

_OPERAND = Kind.of(Operand)


class _SearchOp(Op[Tensor]):
    """Takes a number as well, and promotes element types."""

    input_type = Operand

    def _bind(
        self, args: Sequence[object], keywords: dict[str, object]
    ) -> tuple[list[Tensor | None], dict[str, Any]]:
        if len(args) == 2 and isinstance(args[0], Tensor) and not isinstance(args[1], Tensor):
            number = _OPERAND.convert_argument(self.name, self.inputs[1], args[1])
            common = promote_weak(args[0].dtype, of_scalar(number))
            args = (args[0], tensor(number, dtype=common))
        (rows, values), options = super()._bind(args, keywords)
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
    indices = empty(x.shape, dtypes.int64)
    shape = (many, per_row)
    ordered = rows.contiguous().reshape((many, rows.shape[-1]))
    behind = int(right or side == "right")
    run(
        "searchsorted",
        ordered,
        x.contiguous().reshape(shape),
        indices.reshape(shape),
        sizes=(behind,),
    )
    return indices.cast(dtypes.int32) if out_int32 else indices


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
    why="an index does not change smoothly",
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
    why="an index does not change smoothly",
    method=False,
)
def bucketize(
    input: Tensor | float, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """The number of boundaries below each number, or with `right` those not above it."""
    if boundaries.ndim != 1:
        raise ShapeError(f"bucketize: boundaries must be a vector, got shape {boundaries.shape}")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)
