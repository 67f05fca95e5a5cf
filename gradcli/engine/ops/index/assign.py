"""Assignment: x[index] = value for every index that reading takes, and index_put.

Where no gradient is recorded the memory of x is overwritten and its version counted. Where one is,
x gets new memory and the assignment becomes a part of its history, so that no gradient is lost and
no value that another op has kept is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine import graph, recording
from gradcli.engine import shape as shapes
from gradcli.engine.array import Array, copy_into, writable
from gradcli.engine.composite import IN_PLACE, function
from gradcli.engine.double_backward import alias
from gradcli.engine.op import op
from gradcli.engine.ops.creation.creation import tensor
from gradcli.engine.ops.index.index_add import index_add, index_copy, put_rows
from gradcli.engine.ops.index.indexing import (
    EVERYTHING,
    Layout,
    ParsedIndex,
    flat_positions,
    layout,
    planned,
)
from gradcli.engine.ops.index.slices import PARTS, basic_view
from gradcli.engine.ops.index.where import where
from gradcli.engine.ops.overwrite import refuse_view
from gradcli.engine.ops.shape.expand import expand
from gradcli.engine.ops.shape.permute import permute
from gradcli.engine.ops.shape.reshape import reshape
from gradcli.engine.sample import index as below
from gradcli.engine.sample import none, sample, truth, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor, refuse_recorded
from gradcli.errors import DTypeError, OptionError, ShapeError


@op(
    method=False,
    double_backward="linear",
    samples=[sample(shape, part, index=index) for shape, index, part in PARTS],
    wrong=[
        wrong(sample((3, 4), (4,), index=3), "index 3 is outside -3..2"),
        wrong(sample((3, 4), (3,), index=0), "value has shape (3,), and that part of x is (4,)"),
    ],
)
def with_part(x: Array, value: Array, *, index: Any) -> Array:
    """A copy of x with one part replaced: whole numbers, slices, None and Ellipsis."""
    out = x.copy()
    part = basic_view(out, index, "with_part")
    if value.shape != part.shape:
        raise ShapeError(
            f"with_part: value has shape {value.shape}, and that part of x is {part.shape}"
        )
    copy_into(part, value)
    return out


@with_part.gradient
def with_part_gradient(
    grad: Array, *, needs: tuple[bool, bool], dtypes: tuple[Any, Any], index: object
) -> tuple[Array | None, Array | None]:
    """To value the part of it; to x the rest."""
    rest = None
    if needs[0]:
        rest = grad.copy()
        part = basic_view(rest, index)
        copy_into(part, tensor(0.0, dtype=dtypes[0]).array.expand(part.shape))
    return rest, basic_view(grad, index) if needs[1] else None


@function(
    "setitem",
    method=False,
    samples=[
        sample((5, 6), (2, 3), index=(slice(1, None, 2), slice(None, 3))),
        sample((3, 4), truth((3, 4)), ()),
        sample((4, 5, 1), (2, 1), index=(slice(None), [0, -1])),
        sample((2, 3, 4), index=(Ellipsis, 1), value=2.5),
        sample((6,), below((1,), 6), (1,)),
        sample((0, 3), (3,), index=slice(None)),
    ],
    wrong=[wrong(sample((3, 4), (3,), index=0), "shapes (3,) and (4,) do not broadcast")],
    why="it writes into its input; where a gradient is asked for, the input becomes a result",
    shares="input",
)
def setitem(input: Tensor, index: Any, value: Any) -> None:
    """Replace part of a tensor; the value is cast and broadcast. The last of several stays."""
    source = value if isinstance(value, Tensor) else tensor(value, dtype=input.dtype)
    numbers_pick = recording.current() is not None  # then nobody may read them
    plan = planned("setitem", input.shape, index, numbers_pick=numbers_pick)
    if graph.grad_enabled() and (input.requires_grad or source.requires_grad):
        _record(input, plan, source)
        return
    writable(input.array, "setitem")
    view = basic_view(input.array, plan.plain, plan.name)
    source = source.detach()
    if source.array.storage is view.storage:
        source = source.clone()
    if not plan.picks:
        copy_into(view, _fitted(source, view.shape).array)
    elif _fills(plan, source):
        copy_into(view, _filled(plan, plan.view(input.detach()), source).array)
    else:
        _overwrite(plan, view, source)


def _fitted(source: Tensor, shape: Shape, name: str = "setitem") -> Tensor:
    """The value broadcast to a shape; sizes of 1 in front of it may be too many."""
    extra = source.ndim - len(shape)
    if extra > 0 and source.shape[:extra] == (1,) * extra:
        source = reshape(source, source.shape[extra:])
    if shapes.broadcast(source.shape, shape, name) != shape:
        raise ShapeError(f"{name}: a value of shape {source.shape} does not fit into {shape}")
    return expand(source, shape)


def _fills(plan: ParsedIndex, source: Tensor) -> bool:
    """True for one number where a mask is true: then nobody needs to know where that is."""
    return len(plan.picks) == 1 and plan.picks[0].is_mask and source.numel() == 1


def _filled(plan: ParsedIndex, view: Tensor, source: Tensor) -> Tensor:
    """The view with one number where the mask is true."""
    (pick,) = plan.picks
    behind = (1,) * (view.ndim - pick.dims.stop)
    mask = reshape(pick.index, (*pick.index.shape, *behind))
    return where(mask, reshape(source, ()).to(view.dtype), view)


def _parts(plan: ParsedIndex, view: Shape, source: Tensor) -> tuple[Layout, Tensor, Tensor]:
    """How the view lies, the places of its rows, and the values that go there."""
    form = layout(view, plan.picks)
    flat, shape = flat_positions(plan.name, plan.picks)
    return form, flat, _fitted(source, form.result(shape), plan.name)


def _overwrite(plan: ParsedIndex, view: Array, source: Tensor) -> None:
    """Rows of the view's memory, or of a copy where it cannot be seen as rows."""
    form, flat, values = _parts(plan, view.shape, source)
    moved = view.permute(form.order)
    rows = moved.reshape(form.lines)
    there = values.to(view.dtype).array.reshape((form.lines[0], flat.numel(), form.lines[2]))
    put_rows(plan.name, rows, flat.array, there, rows)
    if rows.storage is view.storage:
        rows.storage.version += 1
    else:
        copy_into(moved, rows.reshape(moved.shape))


def _record(input: Tensor, plan: ParsedIndex, source: Tensor) -> None:
    """The tensor becomes the result of an op."""
    refuse_view("setitem", input)
    if input.leaf is not None:
        refuse_recorded("setitem", input, source)
    result = alias(_assigned(input, plan, source.to(input.dtype)))  # nobody else has its memory
    input.array, input.node, input.output = result.array, result.node, result.output


def _assigned(input: Tensor, plan: ParsedIndex, source: Tensor) -> Tensor:
    """The input with a part replaced, by ops."""
    view = plan.view(input)
    if not plan.picks:
        new = _fitted(source, view.shape)
    elif _fills(plan, source):
        new = _filled(plan, view, source)
    else:
        new = _with_rows(plan, view, source, accumulate=False)
    if plan.picks and plan.whole:
        return new
    return with_part(input, new, index=plan.plain)


def _with_rows(plan: ParsedIndex, view: Tensor, source: Tensor, *, accumulate: bool) -> Tensor:
    """The view with rows replaced, or added to."""
    form, flat, values = _parts(plan, view.shape, source)
    moved = permute(view, form.order)
    rows = reshape(moved, form.lines)
    there = reshape(values, (form.lines[0], flat.numel(), form.lines[2]))
    rows = (index_add if accumulate else index_copy)(rows, flat, there, dim=1)
    back = [form.order.index(d) for d in range(view.ndim)]
    return permute(reshape(rows, moved.shape), back)


# -- index_put -------------------------------------------------------------------------------------

_INDEX_PUT = [
    sample((5, 3), below((1,), 5), (1, 3)),
    sample((3, 4), below((2, 1), 3), below((3,), 4), (3,), accumulate=True),
    sample((2, 3), truth((2, 3)), ()),
    sample((0, 3), below((0,), 1), (3,)),
]
_WRONG_INDEX_PUT = [
    wrong(sample((3,), none(), (3,)), "at least one index must be a tensor with dimensions"),
    wrong(sample((3,), (2,)), "indices must be a tuple of tensors, got []"),
    wrong(sample((3,), below((2,), 3), below((2,), 2)), "values are gradcli.int64 and input"),
    wrong(sample((5, 3), below((2,), 5), (4,)), "shapes (4,) and (2, 3) do not broadcast"),
]


@function(samples=_INDEX_PUT, wrong=_WRONG_INDEX_PUT)
def index_put(
    input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """A copy with values put where the index tensors say; or added there, one after another."""
    if not isinstance(indices, (tuple, list)) or not indices:
        raise OptionError(f"index_put: indices must be a tuple of tensors, got {indices!r:.60}")
    if values.dtype is not input.dtype:
        raise DTypeError(f"index_put: values are {values.dtype} and input {input.dtype}")
    parts = tuple(EVERYTHING if index is None else index for index in indices)
    plan = planned("index_put", input.shape, parts)
    if not plan.picks:
        raise OptionError("index_put: at least one index must be a tensor with dimensions")
    return _with_rows(plan, plan.view(input), values, accumulate=accumulate)


@function("index_put_", samples=_INDEX_PUT, why=IN_PLACE)
def index_put_(
    input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """Values put where the index tensors say, or added there, written over the input."""
    refuse_recorded("index_put_", input, values)
    copy_into(input.array, index_put(input, indices, values, accumulate).array)
    return input
