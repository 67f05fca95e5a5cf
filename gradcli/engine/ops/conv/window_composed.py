"""The composed references of convolution and pooling: one place of the window after another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product
from operator import add, mul

from gradcli.engine import shape as shapes
from gradcli.engine import table
from gradcli.engine.ops.conv.geometry import Geometry
from gradcli.engine.ops.creation.creation import full, tensor
from gradcli.engine.ops.creation.ranges import arange
from gradcli.engine.ops.index.index_select import index_select
from gradcli.engine.ops.index.where import where
from gradcli.engine.ops.shape.join import cat, stack
from gradcli.engine.ops.shape.reshape import reshape
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor

Sizes = Sequence[int]


def _around(x: Tensor, dim: int, before: int, after: int, value: float) -> Tensor:
    """The tensor with more of one value in front and behind along a dimension."""

    def more(count: int) -> Tensor:
        return full((*x.shape[:dim], count, *x.shape[dim + 1 :]), value, dtype=x.dtype)

    return cat([more(before), x, more(after)], dim)


def _places(x: Tensor, geometry: Geometry, counts: Sizes, value: float) -> list[Tensor]:
    """What each place of the window sees of (..., sizes), for all windows at once."""
    rows = zip(counts, *geometry, strict=True)
    for dim, (count, window, step, front, _, gap) in enumerate(rows, x.ndim - len(counts)):
        reach = (count - 1) * step + gap * (window - 1) + 1
        x = _around(x, dim, front, max(0, reach - front - x.shape[dim]), value)
    return [
        x[(Ellipsis, *map(_every, map(mul, place, geometry.dilation), geometry.stride, counts))]
        for place in _window(geometry.window)
    ]


def _window(sizes: Sizes) -> Iterator[Sizes]:
    """The places of a window, the last dimension's one after another."""
    return product(*map(range, sizes))


def _every(first: int, step: int, count: int) -> slice:
    return slice(first, first + (count - 1) * step + 1, step)


def _of_filters(weight: Tensor, place: Sizes, groups: int) -> Tensor:
    """What filters (rows, columns, window) have at a place of their window: (1, groups, ...)."""
    rows, columns = weight.shape[:2]
    tap = weight[(slice(None), slice(None), *place)]
    return reshape(tap, (1, groups, rows // groups, columns))


def _biased(y: Tensor, bias: Tensor | None) -> Tensor:
    """One number more for each channel."""
    return y if bias is None else y + reshape(bias, (1, y.shape[1], *(1,) * (y.ndim - 2)))


def convolved(
    x: Tensor, weight: Tensor, bias: Tensor | None, y: Shape, geometry: Geometry, groups: int
) -> Tensor:
    """Inputs (N, C, sizes) times filters (O, C / groups, window): the shape y."""
    counts = y[2:]
    each = (y[0], groups, x.shape[1] // groups, shapes.numel(counts))
    parts = zip(_window(geometry.window), _places(x, geometry, counts, 0.0), strict=True)
    taps = (_of_filters(weight, place, groups) @ reshape(part, each) for place, part in parts)
    total = reshape(reduce(add, taps), y)
    return _biased(total, bias)


def spread(
    x: Tensor, weight: Tensor, bias: Tensor | None, y: Shape, geometry: Geometry, groups: int
) -> Tensor:
    """The transposed convolution: filters (C, O / groups, window) laid over each other."""
    n, channels, *counts = x.shape
    columns = reshape(x, (n, groups, channels // groups, shapes.numel(tuple(counts))))

    def laid(place: Sizes) -> Tensor:
        tap = _of_filters(weight, place, groups)
        part = reshape(tap.mT @ columns, (n, y[1], *counts))
        rows = zip(place, y[2:], *geometry, strict=True)
        for dim, (at, length, _, step, front, behind, gap) in enumerate(rows, 2):
            part = _apart(part, dim, step, at * gap, length + front + behind)
        return part

    total = reduce(add, map(laid, _window(geometry.window)))
    inside = map(_every, geometry.padding, [1] * len(counts), y[2:])
    return _biased(total[(slice(None), slice(None), *inside)], bias)


def _apart(x: Tensor, dim: int, step: int, first: int, length: int) -> Tensor:
    """Slices laid `step` apart from `first` on, and 0 elsewhere."""
    before, size, after = x.shape[:dim], x.shape[dim], x.shape[dim + 1 :]
    wide = _around(reshape(x, (*before, size, 1, *after)), dim + 1, 0, step - 1, 0.0)
    wide = reshape(wide, (*before, size * step, *after))
    wide = wide[(slice(None),) * dim + (slice((size - 1) * step + 1),)]
    return _around(wide, dim, first, length - first - wide.shape[dim], 0.0)


def largest(x: Tensor, geometry: Geometry, counts: Shape) -> tuple[Tensor, Tensor]:
    """Of each window of (..., sizes) the largest number, and its place in its plane."""
    seen = stack(_places(x, geometry, counts, -math.inf))
    values, places = table.max(seen, 0)
    dims = len(counts)
    at: Tensor | None = None
    for number, place in enumerate(_window(geometry.window)):
        here = tensor(0)
        rows = zip(place, counts, x.shape[-dims:], *geometry, strict=True)
        for dim, (a, count, length, _, step, front, _, gap) in enumerate(rows):
            here = here * length + _along(arange(count) * step + (a * gap - front), dims - dim)
        at = where(places == number, here, here if at is None else at)
    assert at is not None, "a window has at least one place"
    return values, at


def picked(x: Tensor, indices: Tensor, planes: int) -> Tensor:
    """The elements of (planes, sizes) that are at these places of their planes."""
    size = x.numel() // planes if planes else 0
    first = reshape(arange(planes) * size, (planes, 1))
    flat = reshape(indices, (planes, indices.numel() // planes if planes else 0)) + first
    chosen = index_select(reshape(x, (x.numel(),)), reshape(flat, (flat.numel(),)), dim=0)
    return reshape(chosen, indices.shape)


def averaged(x: Tensor, geometry: Geometry, counts: Shape, padded: bool, by: int) -> Tensor:
    """The mean of each window of (..., sizes), of what is padded too; or its sum over `by`."""
    total = reduce(add, _places(x, geometry, counts, 0.0))
    if by:
        return total / by
    dims, (window, stride, padding, _, _) = len(counts), geometry
    rows = zip(counts, x.shape[-dims:], window, stride, padding, strict=True)
    sizes = [_along(tensor(_sizes(*row, padded)), dims - d) for d, row in enumerate(rows)]
    return total / reduce(mul, sizes).to(x.dtype)


def _along(numbers: Tensor, dims: int) -> Tensor:
    """Numbers along the first of so many dimensions."""
    return reshape(numbers, (numbers.shape[0], *(1,) * (dims - 1)))


def _sizes(count: int, length: int, window: int, step: int, front: int, padded: bool) -> list[int]:
    """How many places of each window count: those in the padding too, or only those inside."""
    low, high = (-front, length + front) if padded else (0, length)
    firsts = [i * step - front for i in range(count)]
    return [min(first + window, high) - max(first, low) for first in firsts]
