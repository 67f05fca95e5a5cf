"""Borders around a tensor, windows of images as columns and back, and rows with a single 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine.composite import function
from gradcli.engine.kind import Number
from gradcli.engine.ops.creation.creation import arange, full, tensor, zeros
from gradcli.engine.ops.elementwise.elementwise import clamp
from gradcli.engine.ops.index.assign import with_part
from gradcli.engine.ops.index.index import index_select
from gradcli.engine.ops.index.rows import index_add
from gradcli.engine.ops.index.scatter import scatter
from gradcli.engine.ops.reduce.extreme import amax
from gradcli.engine.ops.shape.movement import getitem, permute, reshape
from gradcli.engine.ops.shape.rearrange import unfold
from gradcli.engine.sample import index, sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, ShapeError


def _reflect(front: int, size: int, behind: int) -> Tensor:
    places = (abs(at) for at in range(-front, size + behind))
    return _listed([at if at < size else 2 * (size - 1) - at for at in places])


def _replicate(front: int, size: int, behind: int) -> Tensor:
    """By ops, which refuse at once what is too wide for memory: it may be of any width."""
    places: Tensor = clamp(arange(front + size + behind) - front, 0, size - 1)
    return places


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
            f"pad: needs two whole numbers for each of at most {x.ndim} dimensions, got {pad!r}"
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
    result: Tensor = with_part(frame, part, index=tuple(inside))
    return result


def _bordered(x: Tensor, mode: str, d: int, front: int, behind: int) -> Tensor:
    places, limit = _BORDERS[mode]
    size = x.shape[d]
    if limit is not None and max(front, behind) > max(size + limit, 0):
        raise ShapeError(
            f"pad: {mode} borders of dimension {d} can have {max(size + limit, 0)} elements, "
            f"got {front} and {behind} for shape {x.shape}"
        )
    if not size and max(front, behind) > 0:
        raise ShapeError(f"pad: dimension {d} of {x.shape} has nothing to fill a border with")
    result: Tensor = index_select(x, d, places(front, size, behind))
    return result


# -- windows as columns ----------------------------------------------------------------------------


def _pair(name: str, what: str, given: Any, least: int) -> tuple[int, int]:
    pair = (given, given) if isinstance(given, int) else tuple(given)
    if len(pair) != 2 or any(type(n) is not int or n < least for n in pair):
        raise OptionError(
            f"{name}: {what} must be one or two numbers from {least}, got {given!r:.60}"
        )
    return pair


def _columns(
    x: Tensor, kernel: tuple[int, int], dilation: tuple[int, int], stride: tuple[int, int]
) -> Tensor:
    """(N, C, H, W) as (N, C, kernel, kernel, windows, windows)."""
    for d in (0, 1):
        reach = (kernel[d] - 1) * dilation[d] + 1
        if reach > x.shape[2 + d]:
            raise ShapeError(f"unfold: a window of {reach} does not fit into padded {x.shape}")
        x = unfold(x, dimension=2 + d, size=reach, step=stride[d])
    thinned = getitem(x, index=(Ellipsis, *(slice(None, None, n) for n in dilation)))
    result: Tensor = permute(thinned, (0, 1, 4, 5, 2, 3))
    return result


@function(
    samples=[
        sample((2, 3, 4, 5), kernel_size=2),
        sample((1, 2, 5, 6), kernel_size=(2, 3), stride=(2, 1), padding=1),
        sample((2, 5, 6), kernel_size=2, dilation=(2, 1), padding=(0, 2)),
        sample((1, 1, 1, 1), kernel_size=1),
        sample((0, 2, 3, 4), kernel_size=2),
    ],
    method=False,
)
def im2col(
    input: Tensor,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Windows of images (N, C, H, W) as columns (N, C * window, windows): F.unfold."""
    if input.ndim not in (3, 4):
        raise ShapeError(f"unfold: input must be (N, C, H, W) or (C, H, W), got {input.shape}")
    x: Tensor = input if input.ndim == 4 else reshape(input, (1, *input.shape))
    kernel = _pair("unfold", "kernel_size", kernel_size, 1)
    border = _pair("unfold", "padding", padding, 0)
    x = pad(x, (border[1], border[1], border[0], border[0]))
    gap, step = _pair("unfold", "dilation", dilation, 1), _pair("unfold", "stride", stride, 1)
    columns = _columns(x, kernel, gap, step)
    n, c, kh, kw, h, w = columns.shape
    shape = (c * kh * kw, h * w)
    result: Tensor = reshape(columns, shape if input.ndim == 3 else (n, *shape))
    return result


@function(
    samples=[
        sample((2, 8, 6), output_size=(3, 4), kernel_size=2),
        sample((1, 6, 4), output_size=(3, 2), kernel_size=(2, 3), stride=(2, 1), padding=1),
        sample((4, 9), output_size=(4, 5), kernel_size=2, dilation=(1, 2)),
        sample((1, 1), output_size=1, kernel_size=1),
        sample((0, 4, 6), output_size=(3, 4), kernel_size=2),
    ],
    method=False,
)
def col2im(
    input: Tensor,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Columns (N, C * window, windows) laid back into images and added up: F.fold."""
    if input.ndim not in (2, 3):
        raise ShapeError(f"fold: input must be (N, C * window, windows), got {input.shape}")
    size = _pair("fold", "output_size", output_size, 1)
    border = _pair("fold", "padding", padding, 0)
    kernel = _pair("fold", "kernel_size", kernel_size, 1)
    gap, step = _pair("fold", "dilation", dilation, 1), _pair("fold", "stride", stride, 1)
    high, wide = (size[d] + 2 * border[d] for d in (0, 1))
    places = _columns(reshape(arange(high * wide), (1, 1, high, wide)), kernel, gap, step)
    windows, window = places.shape[4] * places.shape[5], kernel[0] * kernel[1]
    if input.shape[-1] != windows or input.shape[-2] % window:
        raise ShapeError(
            f"fold: input must be (N, a multiple of {window}, {windows}) for an output of {size}, "
            f"got {input.shape}"
        )
    outside = (*input.shape[:-2], input.shape[-2] // window)
    rows = reshape(input, (shapes.numel(outside), window * windows))
    flat = zeros(rows.shape[0], high * wide, dtype=input.dtype)
    whole = index_add(flat, 1, reshape(places, (window * windows,)), rows)
    cut = tuple(slice(border[d], border[d] + size[d]) for d in (0, 1))
    result: Tensor = getitem(reshape(whole, (*outside, high, wide)), index=(Ellipsis, *cut))
    return result


@function(
    samples=[
        sample(index((3, 5), 4)),
        sample(index((2, 1), 3), num_classes=5),
        sample(index((), 3)),
        sample(index((0, 3), 4), num_classes=4),
    ],
    wrong=[
        wrong(sample((2,)), "classes must be int64, got gradcli.float64"),
        wrong(sample(index((0, 3), 4)), "the number of classes must be given"),
    ],
    why="whole numbers have no slope",
    method=False,
)
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """For each class a row of zeros with a 1 at its place; without a number of classes all seen."""
    if tensor.dtype is not dtypes.int64:
        raise DTypeError(f"one_hot: classes must be int64, got {tensor.dtype}; use x.long()")
    if num_classes == -1:
        if not tensor.numel():
            raise OptionError("one_hot: without elements the number of classes must be given")
        num_classes = max(0, int(amax(tensor).item())) + 1
    nothing = zeros(*tensor.shape, num_classes, dtype=dtypes.int64)
    result: Tensor = scatter(nothing, -1, reshape(tensor, (*tensor.shape, 1)), 1)
    return result
