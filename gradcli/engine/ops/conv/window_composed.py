"""The composed references of convolution and pooling: one place of the window after another."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gradcli.engine import shape as shapes
from gradcli.engine.ops.creation.creation import full, tensor
from gradcli.engine.ops.creation.ranges import arange
from gradcli.engine.ops.index.index_select import index_select
from gradcli.engine.ops.index.where import where
from gradcli.engine.ops.shape.join import cat, stack
from gradcli.engine.ops.shape.reshape import reshape
from gradcli.engine.shape import Shape
from gradcli.engine.table import OPS
from gradcli.engine.tensor import Tensor

Sizes = Sequence[int]


def _around(x: Tensor, dim: int, before: int, after: int, value: float) -> Tensor:
    """The tensor with more of one value in front and behind along a dimension."""

    def more(count: int) -> Tensor:
        return full((*x.shape[:dim], count, *x.shape[dim + 1 :]), value, dtype=x.dtype)

    return cat([more(before), x, more(after)], dim)


def _places(
    x: Tensor, window: Sizes, step: Sizes, pad: Sizes, gap: Sizes, size: Sizes, value: float
) -> list[Tensor]:
    """What each place of the window sees of (..., H, W), for all windows at once."""
    for i in (0, 1):
        reach = (size[i] - 1) * step[i] + gap[i] * (window[i] - 1) + 1
        behind = max(0, reach - pad[i] - x.shape[i - 2])
        x = _around(x, x.ndim - 2 + i, pad[i], behind, value)
    return [
        x[..., _every(a * gap[0], step[0], size[0]), _every(b * gap[1], step[1], size[1])]
        for a in range(window[0])
        for b in range(window[1])
    ]


def _every(first: int, step: int, count: int) -> slice:
    return slice(first, first + (count - 1) * step + 1, step)


def convolved(x: Tensor, weight: Tensor, bias: Tensor | None, y: Shape, sizes: Sizes) -> Tensor:
    """Images (N, C, H, W) times filters (O, C / groups, rows, columns): the shape y."""
    step, pad, gap, groups = sizes[:2], sizes[2:4], sizes[4:6], sizes[6]
    n, filters, *size = y
    seen = _places(x, weight.shape[2:], step, pad, gap, size, 0.0)
    each = (n, groups, x.shape[1] // groups, shapes.numel(tuple(size)))
    total: Tensor | None = None
    for place, part in enumerate(seen):
        tap = weight[:, :, place // weight.shape[3], place % weight.shape[3]]
        tap = reshape(tap, (1, groups, filters // groups, weight.shape[1]))
        product = tap @ reshape(part, each)
        total = product if total is None else total + product
    assert total is not None, "a window has at least one place"
    made: Tensor = reshape(total, y)
    return made if bias is None else made + reshape(bias, (1, filters, 1, 1))


def spread(x: Tensor, weight: Tensor, bias: Tensor | None, y: Shape, sizes: Sizes) -> Tensor:
    """The transposed convolution: filters (C, O / groups, rows, columns) laid over each other."""
    step, pad, gap, groups = sizes[:2], sizes[2:4], sizes[4:6], sizes[6]
    n, channels, h, w = x.shape
    pixels = reshape(x, (n, groups, channels // groups, h * w))
    total: Tensor | None = None
    for place in range(weight.shape[2] * weight.shape[3]):
        a, b = divmod(place, weight.shape[3])
        tap = reshape(weight[:, :, a, b], (1, groups, channels // groups, weight.shape[1]))
        laid = reshape(tap.mT @ pixels, (n, y[1], h, w))
        for i, at in ((0, a), (1, b)):
            laid = _apart(laid, 2 + i, step[i], at * gap[i], y[2 + i] + 2 * pad[i])
        total = laid if total is None else total + laid
    assert total is not None, "a window has at least one place"
    made = total[:, :, pad[0] : pad[0] + y[2], pad[1] : pad[1] + y[3]]
    return made if bias is None else made + reshape(bias, (1, y[1], 1, 1))


def _apart(x: Tensor, dim: int, step: int, first: int, length: int) -> Tensor:
    """Slices laid `step` apart from `first` on, and 0 elsewhere."""
    before, size, after = x.shape[:dim], x.shape[dim], x.shape[dim + 1 :]
    wide = _around(reshape(x, (*before, size, 1, *after)), dim + 1, 0, step - 1, 0.0)
    wide = reshape(wide, (*before, size * step, *after))
    wide = wide[(slice(None),) * dim + (slice((size - 1) * step + 1),)]
    return _around(wide, dim, first, length - first - wide.shape[dim], 0.0)


def largest(x: Tensor, y: Shape, sizes: Sizes) -> tuple[Tensor, Tensor]:
    """Of each window of (planes, H, W) the largest, and where it lies in its plane."""
    window, step, pad, gap = sizes[:2], sizes[2:4], sizes[4:6], sizes[6:8]
    seen = stack(_places(x, window, step, pad, gap, y[1:], -math.inf))
    values, places = OPS["max"](seen, 0)
    rows, columns = (arange(y[1 + i]) * step[i] - pad[i] for i in (0, 1))
    at: Tensor | None = None
    for place in range(window[0] * window[1]):
        a, b = divmod(place, window[1])
        here = reshape(rows + a * gap[0], (y[1], 1)) * x.shape[2] + (columns + b * gap[1])
        at = where(places == place, here, here if at is None else at)
    assert at is not None, "a window has at least one place"
    return values, at


def picked(x: Tensor, indices: Tensor, planes: int) -> Tensor:
    """The elements of (planes, H, W) that are at these places of their planes."""
    size = x.numel() // planes if planes else 0
    first = reshape(arange(planes) * size, (planes, 1))
    flat = reshape(indices, (planes, indices.numel() // planes if planes else 0)) + first
    chosen = index_select(reshape(x, (x.numel(),)), reshape(flat, (flat.numel(),)), dim=0)
    made: Tensor = reshape(chosen, indices.shape)
    return made


def averaged(x: Tensor, y: Shape, sizes: Sizes) -> Tensor:
    """The mean of each window of (planes, H, W)."""
    window, step, pad, (counted, by) = sizes[:2], sizes[2:4], sizes[4:6], sizes[8:]
    seen = _places(x, window, step, pad, (1, 1), y[1:], 0.0)
    total = seen[0]
    for part in seen[1:]:
        total = total + part
    rows, columns = (
        tensor(_counts(x.shape[1 + i], window[i], step[i], pad[i], y[1 + i], bool(counted)))
        for i in (0, 1)
    )
    mean: Tensor = total / (by or (reshape(rows, (y[1], 1)) * columns).to(x.dtype))
    return mean


def _counts(length: int, window: int, step: int, pad: int, size: int, counted: bool) -> list[int]:
    """How many places of each window count: those in the padding too, or only those inside."""
    low, high = (-pad, length + pad) if counted else (0, length)
    firsts = [i * step - pad for i in range(size)]
    return [min(first + window, high) - max(first, low) for first in firsts]
