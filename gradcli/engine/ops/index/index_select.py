"""Elements picked along a dimension by one index: index_select, embedding, take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shape_rules
from gradcli.engine.array import Array, full, nothing, result, run
from gradcli.engine.composite import function
from gradcli.engine.op import declare_op, op
from gradcli.engine.ops.index.where import where
from gradcli.engine.ops.order import OptionSecond
from gradcli.engine.ops.shape.reshape import reshape
from gradcli.engine.sample import index as below
from gradcli.engine.sample import none, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, RangeError, ShapeError

SET, ADD, MULTIPLY, MAX, MIN = range(5)  # ways to put: as in csrc/cpu/index/gather.h


def whole_indices(name: str, index: Array) -> Array:
    """Indices as the kernels take them: contiguous int64."""
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise DTypeError(f"{name}: indices must be int64 or int32, got {index.dtype}")
    whole = index if index.dtype is dtypes.int64 else index.cast(dtypes.int64)
    return whole.contiguous()


def run_as(name: str, kernel: str, *arrays: Array, sizes: Sequence[int] = ()) -> None:
    """Run a kernel that reports a bad index in the name of the op that the user called."""
    try:
        run(kernel, *arrays, sizes=sizes)
    except RangeError as error:
        raise RangeError(error.message.replace(f"{kernel}: ", f"{name}: ")) from None


def result_as(name: str, kernel: str, *inputs: Array, **about: Any) -> Array:
    """The same of a kernel that makes a fresh array: what `result` asks for."""
    try:
        return result(kernel, *inputs, **about)
    except RangeError as error:
        raise RangeError(error.message.replace(f"{kernel}: ", f"{name}: ")) from None


def _positions(name: str, index: Array) -> Array:
    """Indices in one dimension."""
    return whole_indices(name, index).reshape((index.numel,))


def _around(shape: Shape, dim: int) -> Shape:
    """A shape seen from one of its dimensions: (outer, n, inner)."""
    return (shape_rules.numel(shape[:dim]), shape[dim], shape_rules.numel(shape[dim + 1 :]))


def _pick(kernel: str, x: Array, index: Array) -> Array:
    """Rows of x (outer, n, inner) by index (m): (outer, m, inner)."""
    return result(kernel, x, index, shape=(x.shape[0], index.numel, x.shape[2]), dtype=x.dtype)


def _unpick(grad: Array, index: Array, around: Shape, skipped: int = -1) -> Array:
    """For each row of (outer, n, inner) the sum of the gradients of its copies."""
    outer, n, inner = around
    rows = grad.reshape((outer, index.numel, inner))
    if outer == inner == 1 and skipped < 0:  # numbers: to sort them by place takes longer
        out = full(around, 0, grad.dtype)
        run("scatter", out, index.reshape(rows.shape), rows.contiguous(), out, sizes=(ADD,))
        return out
    transposed = outer > inner == 1  # then what is added are rows of all numbers of one place
    if transposed:
        rows, around = rows.permute((2, 1, 0)), (1, n, outer)
    about: dict[str, Any] = {"shape": around, "dtype": grad.dtype, "sizes": (skipped,)}
    out = result("index_select_backward", rows.contiguous(), index, **about)
    return out.permute((2, 1, 0)).contiguous() if transposed else out


def _index_select(x: Array, index: Array, *, dim: int) -> Array:
    """The slices of x along `dim` that `index` (one dimension) names, in its order."""
    if x.ndim == 0 or index.ndim > 1:
        raise ShapeError(
            "index_select: needs an x with dimensions and an index with at most one, "
            f"got x {x.shape}, index {index.shape}"
        )
    d = shape_rules.dim_index(dim, x.ndim, "index_select")
    rows = x.contiguous().reshape(_around(x.shape, d))
    out = _pick("index_select", rows, _positions("index_select", index))
    return out.reshape((*x.shape[:d], index.numel, *x.shape[d + 1 :]))


index_select = OptionSecond(
    _index_select,
    name="index_select",
    saves="index",
    double_backward="linear",
    samples=[
        sample((5, 3), below((4,), 5), dim=0),
        sample((2, 3, 4), below((7,), 3), dim=1),
        sample((4, 1), below((3,), 1), dim=-1),
        sample((6,), below((), 6), dim=0),
        sample((3, 2), below((0,), 3), dim=0),
        sample((3, 0), below((2,), 3), dim=0),
    ],
    wrong=[wrong(sample((3, 2), below((1, 1), 3), dim=0), "an index with at most one")],
)
declare_op(index_select)


@index_select.gradient
def index_select_gradient(
    grad: Array, *, index: Array, shapes: tuple[Shape, Shape], dim: int
) -> tuple[Array, None]:
    """Every slice gets the sum over its copies, in the order of their positions."""
    around = _around(shapes[0], dim % len(shapes[0]))
    return _unpick(grad, _positions("index_select", index), around).reshape(shapes[0]), None


def _decomposed_embedding(
    indices: Tensor, weight: Tensor, *, padding_idx: int | None = None
) -> Tensor:
    rows = index_select(weight, indices.reshape(-1), dim=0)
    rows = rows.reshape(*indices.shape, weight.shape[1])
    if padding_idx is None:
        return rows
    hidden = (indices == padding_idx % weight.shape[0]).unsqueeze(-1)
    return where(hidden, rows.detach(), rows)


@op(
    method=False,
    saves="indices",
    decomposition=_decomposed_embedding,
    double_backward="decomposition",
    samples=[
        sample(below((4,), 5), (5, 3)),
        sample(below((2, 3), 3), (4, 2), padding_idx=3),  # row 3 itself must not be drawn:
        # its gradient is 0 by decree
        sample(below((2, 1, 3), 2), (3, 1), padding_idx=-1),
        sample(below((), 3), (3, 2)),
        sample(below((0,), 3), (3, 2)),
        sample(below((2,), 3), (3, 0)),
        sample(below((400,), 3), (3, 130)),
    ],
    wrong=[
        wrong(sample(below((9,), 3), (3,)), "weight must have 2 dimensions, got shape (3,)"),
        wrong(sample(below((2,), 3), (3, 2), padding_idx=3), "padding_idx 3 is outside -3..2"),
    ],
)
def embedding(indices: Array, weight: Array, *, padding_idx: int | None = None) -> Array:
    """Rows of weight (V, D) by index: (..., D). Row `padding_idx` gets no gradient."""
    if weight.ndim != 2:
        raise ShapeError(f"embedding: weight must have 2 dimensions, got shape {weight.shape}")
    rows, width = weight.shape
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RangeError(f"embedding: padding_idx {padding_idx} is outside {-rows}..{rows - 1}")
    table = weight.contiguous().reshape((1, rows, width))
    out = _pick("embedding", table, _positions("embedding", indices))
    return out.reshape((*indices.shape, width))


@embedding.gradient
def embedding_gradient(
    grad: Array, *, indices: Array, shapes: tuple[Shape, Shape], padding_idx: int | None
) -> tuple[None, Array]:
    """Every row gets the sum over its copies, in the order of their positions."""
    rows, width = shapes[1]
    skipped = -1 if padding_idx is None else padding_idx % rows
    summed = _unpick(grad, _positions("embedding", indices), (1, rows, width), skipped)
    return None, summed.reshape((rows, width))


@op(
    method=False,
    samples=[
        sample(below((2, 3), 5), none(), size=5),
        sample(below((4,), 3), below((4,), 6), size=3),
        sample(below((1,), 1), none(), size=1),
        sample(below((0,), 3), none(), size=3),
    ],
    wrong=[wrong(sample(below((2,), 3), below((3,), 3), size=3), "indices (2,) and (3,) differ")],
    why="a place does not change smoothly",
)
def flat_index(index: Array, before: Array | None = None, *, size: int) -> Array:
    """Indices counted from 0 and in one dimension; negative ones count from the end.

    With `before`, indices into the dimensions in front, they are indices into all of them.
    """
    flat = _positions("flat_index", index)
    if before is not None and before.shape != flat.shape:
        raise ShapeError(f"flat_index: indices {flat.shape} and {before.shape} differ in number")
    first = nothing(dtypes.int64) if before is None else before.contiguous()
    return result("flat_index", first, flat, shape=flat.shape, dtype=dtypes.int64, sizes=(size,))


def counted(name: str, index: Tensor, size: int, before: Tensor | None = None) -> Tensor:
    """flat_index in the name of the op that the user called."""
    try:
        return flat_index.ran([index, before], {"size": size})
    except (DTypeError, RangeError) as error:
        raise type(error)(error.message.replace("flat_index: ", f"{name}: ")) from None


@function(
    samples=[
        sample((3, 4), below((2, 5), 12)),
        sample((5, 1), below((), 5)),
        sample((2, 2, 3), below((1, 7), 12)),
        sample((), below((3,), 1)),
        sample((3,), below((0, 2), 3)),
    ],
)
def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements of the flat input, in the index's shape; negative indices count from the end."""
    flat = reshape(input, (input.numel(),))
    indices = counted("take", index, input.numel())
    return reshape(index_select(flat, 0, indices), index.shape)
