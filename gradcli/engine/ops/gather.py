"""Indexing with tensors: x[rows], x[mask], x[rows, columns]. The result is a copy."""

from __future__ import annotations

from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine.op import function
from gradcli.engine.ops.creation import tensor
from gradcli.engine.ops.elementwise import lt
from gradcli.engine.ops.index import index_select, where
from gradcli.engine.ops.movement import getitem, reshape
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, RangeError, ShapeError


@function("getitem_by_tensor", method=False)
def getitem_by_tensor(input: Tensor, index: Any) -> Tensor:
    """Whole numbers, slices and None first, as a view; then the index tensors pick from that."""
    parts = [
        tensor(part or [], dtype=None if part else dtypes.int64) if isinstance(part, list) else part
        for part in (index if isinstance(index, tuple) else (index,))
    ]
    plain: list[Any] = []
    picks: list[tuple[int, Tensor]] = []  # dimension of the view, positions along it
    d = 0
    for part in _spelled_out(parts, input.ndim):
        if isinstance(part, Tensor) and part.ndim:
            for positions in _positions(part, input.shape, _used(plain)):
                picks.append((d, positions))
                plain.append(slice(None))
                d += 1
        else:
            plain.append(part)
            d += part is None or isinstance(part, slice)
    first = picks[0][0]
    if [d for d, _ in picks] != list(range(first, first + len(picks))):
        raise OptionError("getitem: index tensors must stand side by side")
    view: Tensor = getitem(input, index=tuple(plain))
    return _picked(view, first, [positions for _, positions in picks])


def _used(parts: list[Any]) -> int:
    """How many dimensions of the input these parts of an index take."""
    return sum(_size(part) for part in parts)


def _size(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, Tensor) and part.dtype is dtypes.bool_ else 1


def _spelled_out(parts: list[Any], ndim: int) -> list[Any]:
    """Ellipsis replaced by the full slices it stands for."""
    missing = ndim - _used(parts)
    if missing < 0:
        raise RangeError(f"getitem: {_used(parts)} indices for {ndim} dimension(s)")
    places = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(places) > 1:
        raise OptionError("getitem: only one Ellipsis is possible")
    at = places[0] if places else len(parts)
    return [*parts[:at], *[slice(None)] * missing, *parts[at + 1 :]]


def _positions(part: Tensor, shape: Shape, d: int) -> list[Tensor]:
    """An index tensor as positions from 0 on; a mask as those of its dimensions."""
    if part.dtype is dtypes.bool_:
        if part.shape != shape[d : d + part.ndim]:
            raise RangeError(f"getitem: a mask {part.shape} does not fit shape {shape} at dim {d}")
        return _true_places(part)
    if part.dtype not in (dtypes.int64, dtypes.int32):
        raise DTypeError(f"getitem: an index tensor must be int64, int32 or bool, got {part.dtype}")
    size = shape[d]
    whole: Tensor = part.detach().long()
    if whole.numel():
        for value in (whole.amin().item(), whole.amax().item()):
            if not -size <= value < size:
                raise RangeError(
                    f"getitem: index {value} is outside {-size}..{size - 1} of dimension {d}"
                )
    return [where(lt(whole, 0), whole + size, whole)]


def _true_places(mask: Tensor) -> list[Tensor]:
    """Where a mask is true: for each of its dimensions the positions, in row-major order."""
    flat = [i for i, truth in enumerate(mask.reshape(-1).tolist()) if truth]
    places = []
    for size in reversed(mask.shape):
        places.append(tensor([i % size for i in flat], dtype=dtypes.int64))
        flat = [i // size for i in flat]
    return places[::-1]


def _picked(view: Tensor, first: int, positions: list[Tensor]) -> Tensor:
    """The neighbouring dimensions from `first` on, picked from at once."""
    after = first + len(positions)
    flat = positions[0]
    for size, more in zip(view.shape[first + 1 : after], positions[1:], strict=True):
        flat = flat * size + more
    merged = 1
    for size in view.shape[first:after]:
        merged *= size
    before, behind = view.shape[:first], view.shape[after:]
    rows = reshape(view, (*before, merged, *behind))
    result: Tensor = index_select(rows, flat.reshape(-1), dim=first)
    shape = (*before, *flat.shape, *behind)
    if len(shape) > 8:
        raise ShapeError(f"getitem: at most 8 dimensions, got {len(shape)}")
    return reshape(result, shape)  # type: ignore[no-any-return]
