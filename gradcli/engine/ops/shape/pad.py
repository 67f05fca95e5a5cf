"""Borders around a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradcli.engine import dtype as dtypes
from gradcli.engine.composite import function
from gradcli.engine.kind import Number
from gradcli.engine.ops.creation.creation import full, tensor
from gradcli.engine.ops.creation.ranges import arange
from gradcli.engine.ops.elementwise.clamp import clamp
from gradcli.engine.ops.index.assign import with_part
from gradcli.engine.ops.index.index_select import index_select
from gradcli.engine.ops.index.slices import getitem
from gradcli.engine.sample import sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError
from gradcli.wording import quantity


def _reflect(front: int, size: int, behind: int) -> Tensor:
    places = (abs(at) for at in range(-front, size + behind))
    return _listed([at if at < size else 2 * (size - 1) - at for at in places])


def _replicate(front: int, size: int, behind: int) -> Tensor:
    """By ops, which refuse at once what is too wide for memory: it may be of any width."""
    return clamp(arange(front + size + behind) - front, 0, size - 1)


def _circular(front: int, size: int, behind: int) -> Tensor:
    return _listed([at % size for at in range(-front, size + behind)])


def _listed(places: list[int]) -> Tensor:
    return tensor(places, dtype=dtypes.int64)


# Where elements are read, and how much wider than the tensor a border may not be.
_BORDERS: dict[str, tuple[Callable[[int, int, int], Tensor], int | None]] = {
    "reflect": (_reflect, -1),
    "replicate": (_replicate, None),
    "circular": (_circular, 0),
}


def _borders(x: Tensor, pad: Sequence[int]) -> list[tuple[int, int, int]]:
    """(dimension, in front, behind), from the last dimension on."""
    if len(pad) % 2 or len(pad) > 2 * x.ndim or not all(type(n) is int for n in pad):
        raise OptionError(
            f"pad: needs two whole numbers for each of at most {quantity(x.ndim, 'dimension')}, "
            f"got {pad!r}"
        )
    pairs = [(x.ndim - 1 - i // 2, pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    for d, front, behind in pairs:
        if x.shape[d] + front + behind < 0:
            raise ShapeError(f"pad: {front} and {behind} leave nothing of dimension {d}, {x.shape}")
    return pairs


@function(
    samples=[
        sample((3, 5), pad=(1, 2)),
        sample((2, 1, 4), pad=(-1, 2, 1, 0), value=0.5),
        sample((2, 3, 4), pad=(3, 1, 0, 2), mode="reflect"),
        sample((2, 3, 4), pad=(-1, 5), mode="replicate"),
        sample((1, 2, 3, 4), pad=(2, -1, 3, 1), mode="circular"),
        sample((0, 3), pad=(1, 0, 2, 0), value=7.0),
    ],
    wrong=[wrong(sample((2, 3, 0), pad=(1, 0), mode="replicate"), "nothing to fill a border with")],
    method=False,
)
def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: Number | None = None
) -> Tensor:
    """Borders of so many elements, in front of and behind the last dimension, then the one before.

    They hold `value`, the nearest element, or the tensor mirrored or repeated; negative ones cut.
    """
    pairs = _borders(input, pad)
    if mode == "constant":
        return _framed(input, pairs, 0 if value is None else value)
    if mode not in _BORDERS:
        raise OptionError(f"pad: mode must be constant, {', '.join(_BORDERS)}, got {mode!r:.60}")
    if value:
        raise OptionError(f"pad: value {value} has no meaning with mode {mode!r}")
    if not 0 <= input.ndim - len(pairs) - 1 <= 1:
        raise ShapeError(
            f"pad: {mode} pads all dimensions but the first, or but the first two, of "
            f"shape {input.shape}; got {len(pairs)} of them"
        )
    for d, front, behind in pairs:
        if mode == "circular":  # what is cut off does not come back at the other end
            input = _framed(input, [(d, min(front, 0), min(behind, 0))], 0)
            front, behind = max(front, 0), max(behind, 0)
        input = _bordered(input, mode, d, front, behind)
    return input


def _framed(x: Tensor, pairs: list[tuple[int, int, int]], value: float) -> Tensor:
    """The part of x that stays, in a frame of one value."""
    shape, inside, kept = list(x.shape), [slice(None)] * x.ndim, [slice(None)] * x.ndim
    for d, front, behind in pairs:
        shape[d] += front + behind
        kept[d] = slice(max(0, -front), x.shape[d] - max(0, -behind))
        inside[d] = slice(max(0, front), shape[d] - max(0, behind))
    part = getitem(x, index=tuple(kept))
    frame = full(tuple(shape), value, dtype=x.dtype)
    return with_part(frame, part, index=tuple(inside))


def _bordered(x: Tensor, mode: str, d: int, front: int, behind: int) -> Tensor:
    places, limit = _BORDERS[mode]
    size = x.shape[d]
    if limit is not None and max(front, behind) > max(size + limit, 0):
        raise ShapeError(
            f"pad: {mode} borders of dimension {d} can have "
            f"{quantity(max(size + limit, 0), 'element')}, "
            f"got {front} and {behind} for shape {x.shape}"
        )
    if not size and max(front, behind) > 0:
        raise ShapeError(f"pad: dimension {d} of {x.shape} has nothing to fill a border with")
    return index_select(x, d, places(front, size, behind))
