"""Indexing with tensors, masks and lists beside whole numbers, slices and None: x[rows, :, mask].

Whole numbers, slices and None make a view first. Index tensors then pick from its dimensions: they
broadcast against each other, and their shape stands where the first of them stood, or in front
where the dimensions they pick from are no neighbours. The result is a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.engine import dtype as dtypes
from gradcli.engine import recording
from gradcli.engine import shape as shapes
from gradcli.engine.array import whole
from gradcli.engine.composite import function
from gradcli.engine.device import cpu, scope
from gradcli.engine.ops.creation.creation import tensor
from gradcli.engine.ops.elementwise.family import is_watched
from gradcli.engine.ops.index.index_select import counted, index_select
from gradcli.engine.ops.index.masks import true_indices
from gradcli.engine.ops.index.slices import getitem
from gradcli.engine.ops.shape.expand import expand
from gradcli.engine.ops.shape.permute import permute
from gradcli.engine.ops.shape.reshape import reshape
from gradcli.engine.sample import index as below
from gradcli.engine.sample import sample, truth
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, RangeError, ShapeError
from gradcli.wording import quantity

EVERYTHING = slice(None)


@dataclass(frozen=True)
class Pick:
    """What an index tensor picks from.

    Attributes:
        dims: dimensions of the view, side by side.
        size: how many elements they have together.
        index: positions there, negative ones counted from the end; or a mask in their shape.
        source: the first of these dimensions in the tensor itself, for messages.
    """

    dims: range
    size: int
    index: Tensor
    source: int

    @property
    def is_mask(self) -> bool:
        """True for truth values."""
        return self.index.dtype is dtypes.bool_

    def positions(self) -> Tensor:
        """The index as whole numbers."""
        return true_indices(self.index) if self.is_mask else self.index


@dataclass(frozen=True)
class ParsedIndex:
    """An index, taken apart: what makes the view, and what picks from it."""

    name: str
    plain: tuple[Any, ...]
    picks: tuple[Pick, ...]

    @property
    def whole(self) -> bool:
        """True where the view is the tensor itself."""
        return all(isinstance(part, slice) and part == EVERYTHING for part in self.plain)

    def view(self, x: Tensor) -> Tensor:
        """What index tensors pick from."""
        return x if self.whole else getitem(x, index=self.plain)


@dataclass(frozen=True)
class Layout:
    """How the dimensions of the view lie once those that are picked from stand side by side.

    Attributes:
        order: the view's dimensions, in their new order.
        before: sizes in front of those that are picked from.
        size: the number of elements that are picked from.
        behind: sizes behind them.
    """

    order: tuple[int, ...]
    before: Shape
    size: int
    behind: Shape

    @property
    def lines(self) -> tuple[int, int, int]:
        """(outer, n, inner), of which n is picked from."""
        return (shapes.numel(self.before), self.size, shapes.numel(self.behind))

    def result(self, index_shape: Shape) -> Shape:
        """The shape of what index tensors of a common shape pick."""
        return shapes.check_shape((*self.before, *index_shape, *self.behind), "getitem")


def layout(view: Shape, picks: Sequence[Pick]) -> Layout:
    """In place where the dimensions are neighbours, otherwise in front."""
    return _layout(view, tuple([d for pick in picks for d in pick.dims]))


@shapes.remembered
def _layout(view: Shape, dims: Shape) -> Layout:
    neighbours = dims == tuple(range(dims[0], dims[0] + len(dims)))
    rest = [d for d in range(len(view)) if d not in dims]
    first = dims[0] if neighbours else 0
    before, behind = rest[:first], rest[first:]
    sizes = [tuple(view[d] for d in part) for part in (before, dims, behind)]
    return Layout((*before, *dims, *behind), sizes[0], shapes.numel(sizes[1]), sizes[2])


def flat_positions(name: str, picks: Sequence[Pick]) -> tuple[Tensor, Shape]:
    """Index tensors as one position into all dimensions they pick from, and their common shape."""
    indices = [pick.positions() for pick in picks]
    if len(picks) == 1 and picks[0].is_mask:  # counted from 0 already
        return indices[0], indices[0].shape
    shape = reduce(lambda a, b: shapes.broadcast(a, b, name), [x.shape for x in indices])
    flat: Tensor | None = None
    for pick, index in zip(picks, indices, strict=True):
        alone = index.ndim == 1 and index.shape == shape  # most calls: nothing to spread
        spread = index if alone else reshape(expand(index, shape), (shapes.numel(shape),))
        try:
            flat = counted(name, spread, pick.size, flat)
        except RangeError as error:
            where = f"dimension {pick.source}, which has size {pick.size}"
            raise RangeError(f"{error.message} of {where}") from None
    assert flat is not None
    return flat, shape


@function(
    "getitem_by_tensor",
    method=False,
    samples=[
        sample((5, 3), below((4,), 5)),
        sample((4, 5), truth((4, 5))),
        sample((4, 1, 3), truth((4,))),
        sample((3, 4, 5), index=([[0, -1], [2, 0]], slice(None), [1, 4])),
        sample((2, 3, 4), index=(Ellipsis, None, [2], slice(1, None, 2))),
        sample((0, 3), below((2, 0), 3)),
    ],
)
def getitem_by_tensor(input: Tensor, index: Any) -> Tensor:
    """Part of a tensor by index tensors, masks and lists, beside slices and numbers; a copy."""
    at_once = _at_once(input, index if isinstance(index, tuple) else (index,))
    if at_once is not None:
        return at_once
    plan = planned("getitem", input.shape, index)
    return pick_from(plan, plan.view(input)) if plan.picks else plan.view(input).clone()


def _at_once(x: Tensor, parts: tuple[object, ...]) -> Tensor | None:
    """What vectors of places along the first dimensions pick, where nobody must see how.

    None for all else, and for what is refused.
    """
    if scope.devices or cpu.looking or recording.current() is not None:
        return None
    if is_watched(x.node or x.leaf):
        return None
    array, indices = x.array, []
    for part in parts:
        if type(part) is not Tensor or part.array.dtype is not dtypes.int64:
            return None
        indices.append(part.array)
    out = None
    if array.dtype is not dtypes.bfloat16:  # which is widened
        out = cpu.pick(array.descriptor, [index.descriptor for index in indices])
    if out is None:
        return None
    return Tensor(whole(out, (*indices[0].shape, *array.shape[len(indices) :]), array.dtype))


def pick_from(plan: ParsedIndex, view: Tensor) -> Tensor:
    """What a plan picks from its view."""
    flat, index_shape = flat_positions(plan.name, plan.picks)
    dims = [d for pick in plan.picks for d in pick.dims]
    if len(dims) == 1 and len(index_shape) == 1:
        return index_select.ran([view, flat], {"dim": dims[0]})
    form = layout(view.shape, plan.picks)
    if form.order != tuple(range(view.ndim)):
        view = permute(view, form.order)
    result = form.result(index_shape)
    rows = reshape.ran([view], {"shape": (*form.before, form.size, *form.behind)})
    rows = index_select.ran([rows, flat], {"dim": len(form.before)})
    return rows if len(index_shape) == 1 else reshape(rows, result)


# -- taking an index apart -------------------------------------------------------------------------


def planned(name: str, shape: Shape, index: object, *, numbers_pick: bool = False) -> ParsedIndex:
    """An index of a tensor of this shape as a plan.

    With `numbers_pick` tensors without dimensions pick too, unless others do, and are not read.
    """
    entries = index if isinstance(index, tuple) else (index,)
    alone = _whole_slices_beside(entries) if len(entries) <= len(shape) else []
    if alone:
        rows = tuple([Pick(range(d, d + 1), shape[d], x, d) for d, x in alone])
        return ParsedIndex(name, (EVERYTHING,) * len(shape), rows)
    parts = _spelled_out(name, [_part(name, part) for part in entries], shape)
    numbers_pick = numbers_pick and not any(isinstance(p, Tensor) and p.ndim for p in parts)
    plain: list[Any] = []
    picks: list[Pick] = []
    source = view_dim = 0
    for part in parts:
        pick = _pick(name, part, shape, source, view_dim)
        if pick is None and numbers_pick and isinstance(part, Tensor):
            pick = Pick(range(view_dim, view_dim + 1), shape[source], part, source)
        if pick is None:
            plain.append(part)
            view_dim += part is None or isinstance(part, slice)
        else:
            picks.append(pick)
            plain += [EVERYTHING if _count_dims(part) else None] * len(pick.dims)
            view_dim += len(pick.dims)
        source += _count_dims(part)
    return ParsedIndex(name, tuple(plain), tuple(picks))


def _whole_slices_beside(parts: Sequence[object]) -> list[tuple[int, Tensor]]:
    """The index tensors, by dimension, where all else is `:` as in most calls; or none."""
    tensors = []
    for d, part in enumerate(parts):
        if isinstance(part, Tensor) and part.ndim and part.dtype is dtypes.int64:
            tensors.append((d, part))
        elif not isinstance(part, slice) or part != EVERYTHING:
            return []
    return tensors


def _part(name: str, part: object) -> Any:
    """Lists as tensors; one truth value as a mask without dimensions."""
    if isinstance(part, (list, tuple, range)):
        positions = tensor(list(part))
        return positions if positions.numel() else positions.to(dtypes.int64)
    if isinstance(part, Tensor) and part.is_floating_point():
        raise DTypeError(f"{name}: an index tensor must be int64, int32 or bool, got {part.dtype}")
    return part


def _count_dims(part: object) -> int:
    """How many dimensions of the tensor a part of an index takes."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    return part.ndim if isinstance(part, Tensor) and part.dtype is dtypes.bool_ else 1


def _spelled_out(name: str, parts: list[object], shape: Shape) -> list[Any]:
    """Ellipsis, or the end, replaced by the full slices it stands for."""
    index_count = sum(_count_dims(part) for part in parts)
    if index_count > len(shape):
        raise RangeError(
            f"{name}: {quantity(index_count, 'index', 'indices')} for {len(shape)} dimension(s) "
            f"of shape {shape}"
        )
    ellipses = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(ellipses) > 1:
        raise OptionError(f"{name}: only one Ellipsis is possible")
    at = ellipses[0] if ellipses else len(parts)
    return [*parts[:at], *[EVERYTHING] * (len(shape) - index_count), *parts[at + 1 :]]


def _pick(name: str, part: object, shape: Shape, source: int, view_dim: int) -> Pick | None:
    """An index tensor, or a truth value, as what it picks from; None for all else."""
    if isinstance(part, bool):  # one new dimension, taken or not
        index = tensor([0] * part, dtype=dtypes.int64)
        return Pick(range(view_dim, view_dim + 1), 1, index, source)
    if not isinstance(part, Tensor):
        return None
    if part.dtype is dtypes.bool_:
        return _mask(name, part, shape, source, view_dim)
    if not part.ndim:  # a whole number
        return None
    if part.dtype not in (dtypes.int64, dtypes.int32):
        raise DTypeError(f"{name}: an index tensor must be int64, int32 or bool, got {part.dtype}")
    return Pick(range(view_dim, view_dim + 1), shape[source], part, source)


def _mask(name: str, mask: Tensor, shape: Shape, source: int, view_dim: int) -> Pick:
    count = mask.ndim
    if not count:
        return Pick(range(view_dim, view_dim + 1), 1, reshape(mask, (1,)), source)
    covered = shape[source : source + count]
    if mask.shape != covered:
        raise ShapeError(
            f"{name}: a mask {mask.shape} does not fit shape {shape} from dimension {source} on"
        )
    return Pick(range(view_dim, view_dim + count), shapes.numel(covered), mask, source)
