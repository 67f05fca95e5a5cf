"""Decompositions of convolution and pooling: all windows as dimensions of their own."""

from __future__ import annotations

import math
from functools import reduce
from operator import mul

from gradcli.engine import shape as shapes
from gradcli.engine import table
from gradcli.engine.double_backward import transposed
from gradcli.engine.ops.conv.geometry import Geometry
from gradcli.engine.ops.conv.unfold import windows
from gradcli.engine.ops.creation.creation import tensor
from gradcli.engine.ops.creation.ranges import arange
from gradcli.engine.ops.index.index_select import index_select
from gradcli.engine.ops.shape.permute import permute
from gradcli.engine.ops.shape.reshape import reshape
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor


def _plus_bias(y: Tensor, bias: Tensor | None) -> Tensor:
    """One number more for each channel."""
    return y if bias is None else y + reshape(bias, (1, y.shape[1], *(1,) * (y.ndim - 2)))


def convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, y: Shape, geometry: Geometry, groups: int
) -> Tensor:
    """Inputs (N, C, sizes) times filters (O, C / groups, window): the shape y."""
    dims, (n, channels, *counts) = len(y) - 2, (*x.shape[:2], *y[2:])
    views = windows(x, geometry, counts)
    order = (0, 1, *range(2 + dims, 2 + 2 * dims), *range(2, 2 + dims))
    row = channels // groups * shapes.numel(geometry.window)
    columns = reshape(permute(views, order), (n, groups, row, shapes.numel(y[2:])))
    filters = reshape(weight, (1, groups, y[1] // groups, row))
    return _plus_bias(reshape(filters @ columns, y), bias)


def overlay(
    x: Tensor, weight: Tensor, bias: Tensor | None, y: Shape, geometry: Geometry, groups: int
) -> Tensor:
    """The transposed convolution: filters (C, O / groups, window) laid over each other."""

    def straight(images: Tensor) -> Tensor:
        return convolution(images, weight, None, x.shape, geometry, groups)

    return _plus_bias(transposed(straight, y, x), bias)


def maxima(x: Tensor, geometry: Geometry, counts: Shape) -> tuple[Tensor, Tensor]:
    """Of each window of (..., sizes) the largest number, and its index in its plane."""
    views = windows(x, geometry, counts, -math.inf)
    dims, inner = len(counts), shapes.numel(geometry.window)
    values, index = table.max(reshape(views, (*views.shape[:-dims], inner)), -1)
    at = tensor(0)
    rows = zip(counts, x.shape[-dims:], *geometry, strict=True)
    for dim, (count, length, window, step, front, _, gap) in enumerate(rows):
        inner //= window
        first = _along(arange(count) * step - front, dims - dim)
        at = at * length + first + index // inner % window * gap
    return values, at


def pick(x: Tensor, indices: Tensor, planes: int) -> Tensor:
    """The elements of (planes, sizes) that are at these indices of their planes."""
    size = x.numel() // planes if planes else 0
    first = reshape(arange(planes) * size, (planes, 1))
    flat = reshape(indices, (planes, indices.numel() // planes if planes else 0)) + first
    values = index_select(reshape(x, (x.numel(),)), reshape(flat, (flat.numel(),)), dim=0)
    return reshape(values, indices.shape)


def means(x: Tensor, geometry: Geometry, counts: Shape, padded: bool, by: int) -> Tensor:
    """The mean of each window of (..., sizes), of what is padded too; or its sum over `by`."""
    dims, (window, stride, padding, _, _) = len(counts), geometry
    total = table.sum(windows(x, geometry, counts), tuple(range(-dims, 0)))
    if by:
        return total / by
    rows = zip(counts, x.shape[-dims:], window, stride, padding, strict=True)
    sizes = [_along(tensor(_sizes(*row, padded)), dims - d) for d, row in enumerate(rows)]
    return total / reduce(mul, sizes).to(x.dtype)


def _along(numbers: Tensor, dims: int) -> Tensor:
    """Numbers along the first of so many dimensions."""
    return reshape(numbers, (numbers.shape[0], *(1,) * (dims - 1)))


def _sizes(count: int, length: int, window: int, step: int, front: int, padded: bool) -> list[int]:
    """How many elements of each window count: those in the padding too, or only those inside."""
    low, high = (-front, length + front) if padded else (0, length)
    firsts = [i * step - front for i in range(count)]
    return [min(first + window, high) - max(first, low) for first in firsts]
