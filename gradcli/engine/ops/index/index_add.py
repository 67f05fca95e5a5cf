"""Slices along a dimension added to, replaced and filled by index."""

from __future__ import annotations

from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shape_rules
from gradcli.engine.array import Array, empty, full, run, scalar, writable
from gradcli.engine.composite import function
from gradcli.engine.kind import Operand
from gradcli.engine.op import declare_op
from gradcli.engine.ops.along import along
from gradcli.engine.ops.creation.creation import full as full_tensor
from gradcli.engine.ops.elementwise.family import map_binary
from gradcli.engine.ops.index.index_select import (
    ADD,
    counted,
    index_select,
    result_as,
    run_as,
    whole_indices,
)
from gradcli.engine.ops.index.scatter import masked, put_along
from gradcli.engine.ops.index.where import where
from gradcli.engine.ops.order import OptionSecond
from gradcli.engine.ops.shape.reshape import reshape
from gradcli.engine.sample import index as below
from gradcli.engine.sample import sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, RangeError, ShapeError

Lines = tuple[int, int, int]


def _fitting(name: str, x: Array, index: Array, source: Shape, dim: int) -> int:
    """`dim` from the front, once source is like x, with the index's length along it."""
    if not x.ndim:
        raise ShapeError(f"{name}: needs 1 or more dimensions, got shape ()")
    d = shape_rules.dim_index(dim, x.ndim, name)
    expected = (*x.shape[:d], index.numel, *x.shape[d + 1 :])
    if index.ndim > 1 or source != expected:
        raise ShapeError(
            f"{name}: input {x.shape} and index {index.shape} want a source of {expected}, "
            f"got {source}"
        )
    return d


def _same_type(name: str, x: Array, source: Array) -> None:
    if source.dtype is not x.dtype:
        raise DTypeError(f"{name}: source is {source.dtype} and input {x.dtype}")


def _select(grad: Array, index: Array, dim: int) -> Array:
    rows: Array = index_select.forward(grad, index, dim=dim)
    return rows


def _index_add(x: Array, index: Array, source: Array, *, dim: int, alpha: float = 1) -> Array:
    """The input with alpha times the slices of source added to those that index names."""
    d = _fitting("index_add", x, index, source.shape, dim)
    _same_type("index_add", x, source)
    if alpha != 1:
        source = map_binary("mul", source, scalar(alpha, x.dtype))
    lines, count = along(x.shape, (d,)).lines, index.numel
    indices = whole_indices("index_add", index)
    if lines[2] == 1 or not x.numel:  # single numbers, or none: to sort them takes longer
        shape = tuple(count if k == d else 1 for k in range(x.ndim))
        return put_along(
            x, indices.reshape(shape).expand(source.shape), source, d, ADD, "index_add"
        )
    rows = source.contiguous().reshape((lines[0], count, lines[2]))
    inputs = x.contiguous().reshape(lines), indices.reshape((count,)), rows
    out = result_as("index_add", "index_add", *inputs, shape=lines, dtype=x.dtype)
    return out.reshape(x.shape)


_SOURCES = [
    sample((5, 3), below((4,), 5), (4, 3), dim=0),
    sample((2, 3, 4), below((7,), 3), (2, 7, 4), dim=1),
    sample((4, 1), below((3,), 1), (4, 3), dim=-1),
    sample((3, 2), below((0,), 3), (0, 2), dim=0),
    sample((3, 0), below((2,), 3), (2, 0), dim=0),
]
index_add = OptionSecond(
    _index_add,
    name="index_add",
    saves="index",
    double_backward="linear",
    samples=[*_SOURCES, sample((5, 3), below((2,), 5), (2, 3), dim=0, alpha=-2)],
    wrong=[
        wrong(sample((3, 2), below((2,), 3), (2, 3), dim=0), "want a source of (2, 2), got (2, 3)"),
        wrong(sample((3, 2), below((1, 1), 3), (1, 2), dim=0), "want a source of"),
    ],
)
declare_op(index_add)


@index_add.gradient
def index_add_gradient(
    grad: Array, *, index: Array, needs: tuple[bool, ...], dim: int, alpha: float
) -> tuple[Array | None, ...]:
    """Unchanged to x; alpha times the slices at index to source."""
    to_source = None
    if needs[2]:
        to_source = _select(grad, index, dim)
        if alpha != 1:
            to_source = map_binary("mul", to_source, scalar(alpha, grad.dtype))
    return grad, None, to_source


def put_rows(name: str, x: Array, indices: Array, source: Array, out: Array) -> None:
    """Rows of (outer, n, inner) replaced, one after another; x and out may be the same."""
    if indices.numel and x.numel == 0 and source.numel:
        raise RangeError(f"{name}: there is no place to put to in an input without elements")
    run_as(name, "index_copy", x, indices, source, out)


def last_of(indices: Array, n: int) -> Array:
    """True where no later one of these positions below n is the same."""
    count = indices.numel
    numbers = empty((1, count, 1), dtypes.int64)
    run("arange", numbers, sizes=(0, 1))
    stays = full((1, n, 1), 0, dtypes.int64)
    run("index_copy", stays, indices, numbers, stays)
    last = empty((1, count, 1), dtypes.int64)
    run("index_select", stays, indices, last)
    return map_binary("eq", last, numbers, dtypes.bool_).reshape((count,))


def _index_copy(x: Array, index: Array, source: Array, *, dim: int) -> Array:
    """The input with the slices that index names replaced by those of source; the last stays."""
    lines, indices, rows = _rows_for(x, index, source, dim)
    out = empty(lines, x.dtype)
    put_rows("index_copy", x.contiguous().reshape(lines), indices, rows, out)
    return out.reshape(x.shape)


def _rows_for(x: Array, index: Array, source: Array, dim: int) -> tuple[Lines, Array, Array]:
    """X as (outer, n, inner), the places along n, and what is put there."""
    d = _fitting("index_copy", x, index, source.shape, dim)
    _same_type("index_copy", x, source)
    lines, count = along(x.shape, (d,)).lines, index.numel
    indices = whole_indices("index_copy", index).reshape((count,))
    return lines, indices, source.reshape((lines[0], count, lines[2]))


class IndexCopyOp(OptionSecond):
    """index_copy, which may also write into its input at once."""

    def over(self, *args: Any, **keywords: Any) -> bool:
        """The result written over the input; False where a copy is in the way: nothing is done."""
        (input, index, source), options = self._bind(args, keywords)
        assert input is not None and index is not None and source is not None
        x = input.array
        lines, indices, values = _rows_for(x, index.array, source.array, options["dim"])
        if not x.is_contiguous() or values.storage is x.storage:
            return False
        writable(x, "copy_")
        rows = x.reshape(lines)
        put_rows("index_copy", rows, indices, values, rows)
        x.storage.version += 1
        return True


index_copy = IndexCopyOp(
    _index_copy,
    name="index_copy",
    saves="index",
    double_backward="linear",
    samples=_SOURCES,
    wrong=[
        wrong(sample((3, 2), below((2,), 3), (2, 3), dim=0), "want a source of (2, 2), got (2, 3)"),
    ],
)
declare_op(index_copy)


@index_copy.gradient
def index_copy_gradient(
    grad: Array, *, index: Array, shapes: tuple[Shape, ...], needs: tuple[bool, ...], dim: int
) -> tuple[Array | None, ...]:
    """To source the slices that stayed; to x the rest."""
    d = shape_rules.dim_index(dim, len(shapes[0]), "index_copy")
    to_x = to_source = None
    if needs[0]:
        nothing = full((), 0, grad.dtype).expand(shapes[2])
        to_x = _index_copy(grad, index, nothing, dim=dim)
    if needs[2]:
        indices = whole_indices("index_copy", index).reshape((index.numel,))
        stayed = last_of(indices, shapes[0][d])
        mask = stayed.reshape(tuple(stayed.numel if k == d else 1 for k in range(len(shapes[2]))))
        to_source = masked(_select(grad, index, dim).reshape(shapes[2]), mask)
    return to_x, None, to_source


@function(
    samples=[
        sample((5, 3), below((2,), 5), dim=0, value=-1.5),
        sample((2, 3, 4), below((5,), 3), (), dim=1),
        sample((4, 1), below((), 1), dim=-1, value=2),
        sample((), below((1,), 1), (), dim=0),
        sample((3, 2), below((0,), 3), dim=0, value=7),
        sample((0, 3), below((2,), 3), dim=1, value=7),
    ],
    wrong=[
        wrong(
            sample((3, 2), below((1, 1), 3), dim=0, value=0), "index must be a vector, got shape"
        ),
        wrong(
            sample((3, 2), below((1,), 3), (2,), dim=0), "value must be one number, got shape (2,)"
        ),
    ],
)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Operand) -> Tensor:
    """The input with one value in the slices along `dim` that index names."""
    d = shape_rules.dim_index(dim, input.ndim, "index_fill")
    if index.ndim > 1:
        raise ShapeError(f"index_fill: index must be a vector, got shape {index.shape}")
    if isinstance(value, Tensor) and value.ndim:
        raise ShapeError(f"index_fill: value must be one number, got shape {value.shape}")
    size = input.shape[d] if input.ndim else 1
    indices = counted("index_fill", index, size)
    nowhere, every = full_tensor((size,), False), full_tensor(indices.shape, True)
    reached = index_copy(nowhere, 0, indices, every)
    shape = [size if k == d else 1 for k in range(input.ndim)]
    fill = value if isinstance(value, Tensor) else full_tensor((), value, dtype=input.dtype)
    return where(reshape(reached, shape), fill.to(input.dtype), input)
