"""References of matrix products, convolution and pooling, in plain Python float64."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from grid import Grid, broadcast_shape, indices

Pair = int | tuple[int, int]


def pair(value: Pair) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


def _matmul(a: Grid, b: Grid) -> Grid:
    left = Grid((1, *a.shape), a.flat) if a.ndim == 1 else a
    right = Grid((*b.shape, 1), b.flat) if b.ndim == 1 else b
    depth, m, n = left.shape[-1], left.shape[-2], right.shape[-1]
    batch = broadcast_shape(left.shape[:-2], right.shape[:-2])

    def element(at: tuple[int, ...]) -> float:
        *front, i, j = at
        return math.fsum(
            pick_matrix(left, front, i, k) * pick_matrix(right, front, k, j) for k in range(depth)
        )

    full = Grid.from_function((*batch, m, n), element)
    shape = (*batch, *(() if a.ndim == 1 else (m,)), *(() if b.ndim == 1 else (n,)))
    return Grid(shape, full.flat)


def pick_matrix(x: Grid, front: list[int], i: int, j: int) -> float:
    """Element (i, j) of the matrix that broadcasting shows at `front`."""
    sizes = x.shape[:-2]
    at = front[len(front) - len(sizes) :]
    return x[(*(0 if size == 1 else a for size, a in zip(sizes, at, strict=True)), i, j)]


def _linear(x: Grid, weight: Grid, bias: Grid | None) -> Grid:
    def element(at: tuple[int, ...]) -> float:
        *front, j = at
        products = [x[(*front, k)] * weight[j, k] for k in range(weight.shape[1])]
        return math.fsum(products) + (0.0 if bias is None else bias[(j,)])

    return Grid.from_function((*x.shape[:-1], weight.shape[0]), element)


def batched(x: Grid) -> Grid:
    return x if x.ndim == 4 else Grid((1, *x.shape), x.flat)


def like(y: Grid, x: Grid) -> Grid:
    """Without the batch dimension where x has none."""
    return y if x.ndim == 4 else Grid(y.shape[1:], y.flat)


def pixels(
    x: Grid, n: int, c: int, corner: tuple[int, int], window: tuple[int, int], gap: tuple[int, int]
) -> list[tuple[int, int, int, float]]:
    """(row in window, column in window, index in the plane, pixel) of those inside the image."""
    found = []
    for kh, kw in itertools.product(range(window[0]), range(window[1])):
        i, j = corner[0] + kh * gap[0], corner[1] + kw * gap[1]
        if 0 <= i < x.shape[2] and 0 <= j < x.shape[3]:
            found.append((kh, kw, i * x.shape[3] + j, x[n, c, i, j]))
    return found


def _conv2d(
    x: Grid,
    weight: Grid,
    bias: Grid | None,
    stride: Pair = 1,
    padding: Pair | str = 0,
    dilation: Pair = 1,
    groups: int = 1,
) -> Grid:
    image, step, gap = batched(x), pair(stride), pair(dilation)
    window = weight.shape[2:]
    span = [d * (k - 1) + 1 for k, d in zip(window, gap, strict=True)]
    if padding == "same":
        before, total = [(s - 1) // 2 for s in span], [s - 1 for s in span]
    else:
        before = [0, 0] if padding == "valid" else list(pair(padding))  # type: ignore[arg-type]
        total = [2 * p for p in before]
    size = [(image.shape[2 + d] + total[d] - span[d]) // step[d] + 1 for d in (0, 1)]
    per_group = weight.shape[0] // groups

    def element(at: tuple[int, ...]) -> float:
        n, oc, oh, ow = at
        corner = (oh * step[0] - before[0], ow * step[1] - before[1])
        first = oc // per_group * weight.shape[1]
        terms = [
            weight[oc, c, kh, kw] * pixel
            for c in range(weight.shape[1])
            for kh, kw, _, pixel in pixels(image, n, first + c, corner, window, gap)
        ]
        return math.fsum(terms) + (0.0 if bias is None else bias[(oc,)])

    return like(Grid.from_function((image.shape[0], weight.shape[0], *size), element), x)


def outputs(length: int, span: int, stride: int, padding: int, ceil_mode: bool) -> int:
    """How many windows begin inside the image or before it, and end where they may."""
    count = 0
    while True:
        begin = count * stride - padding
        fits = begin + span <= length + padding
        hangs = ceil_mode and begin < length and begin + span - stride < length + padding
        if not (fits or hangs):
            return count
        count += 1


def _pool(
    x: Grid,
    f: Callable[[list[tuple[int, int, int, float]], tuple[int, int]], Any],
    kernel_size: Pair,
    stride: Pair | None,
    padding: Pair,
    dilation: Pair,
    ceil_mode: bool,
) -> Grid:
    image, window, gap, pad = batched(x), pair(kernel_size), pair(dilation), pair(padding)
    step = pair(kernel_size if stride is None else stride)
    size = [
        outputs(image.shape[2 + d], gap[d] * (window[d] - 1) + 1, step[d], pad[d], ceil_mode)
        for d in (0, 1)
    ]

    def element(at: tuple[int, ...]) -> Any:
        n, c, oh, ow = at
        corner = (oh * step[0] - pad[0], ow * step[1] - pad[1])
        return f(pixels(image, n, c, corner, window, gap), corner)

    return like(Grid.from_function((*image.shape[:2], *size), element), x)


def _max_pool2d(
    x: Grid,
    kernel_size: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    dilation: Pair = 1,
    ceil_mode: bool = False,
) -> tuple[Grid, Grid]:
    options = (kernel_size, stride, padding, dilation, ceil_mode)
    best = _pool(x, lambda found, _: max(found, key=lambda p: p[3]), *options)
    return (
        Grid(best.shape, [p[3] for p in best.flat]),
        Grid(best.shape, [p[2] for p in best.flat]),
    )


def _avg_pool2d(
    x: Grid,
    kernel_size: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Grid:
    window, pad = pair(kernel_size), pair(padding)

    def average(found: list[tuple[int, int, int, float]], corner: tuple[int, int]) -> float:
        count = len(found)
        if count_include_pad:
            ends = [min(corner[d] + window[d], batched(x).shape[2 + d] + pad[d]) for d in (0, 1)]
            count = (ends[0] - corner[0]) * (ends[1] - corner[1])
        return math.fsum(p[3] for p in found) / (divisor_override or count)

    return _pool(x, average, kernel_size, stride, padding, 1, ceil_mode)


def _conv_transpose2d(
    x: Grid,
    weight: Grid,
    bias: Grid | None,
    stride: Pair = 1,
    padding: Pair = 0,
    output_padding: Pair = 0,
    groups: int = 1,
    dilation: Pair = 1,
) -> Grid:
    image, step, gap, pad = batched(x), pair(stride), pair(dilation), pair(padding)
    more, window, per_group = pair(output_padding), weight.shape[2:], weight.shape[1]
    channels = image.shape[1] // groups
    size = [
        (image.shape[2 + d] - 1) * step[d] - 2 * pad[d] + gap[d] * (window[d] - 1) + more[d] + 1
        for d in (0, 1)
    ]
    spots: dict[tuple[int, ...], list[float]] = {}
    for n, c, i, j in indices(image.shape):
        for f, kh, kw in indices(weight.shape[1:]):
            at = (i * step[0] - pad[0] + kh * gap[0], j * step[1] - pad[1] + kw * gap[1])
            term = image[n, c, i, j] * weight[c, f, kh, kw]
            spots.setdefault((n, c // channels * per_group + f, *at), []).append(term)
    return like(
        Grid.from_function(
            (image.shape[0], per_group * groups, *size),
            lambda at: math.fsum(spots.get(at, [])) + (0.0 if bias is None else bias[at[1:2]]),
        ),
        x,
    )


def _on_lines(f: Callable[..., Any], options: Sequence[str]) -> Callable[..., Any]:
    """The reference of an op on images as one on lines: images of height 1."""

    def high(x: Grid | None, i: int) -> Grid | None:
        if x is None or i == 2:  # the bias
            return x
        shape = x.shape if x.ndim == 3 else (1, *x.shape)
        return Grid((*shape[:2], 1, shape[2]), x.flat)

    def flat(y: Grid, x: Grid) -> Grid:
        shape = (*y.shape[:2], y.shape[3])
        return Grid(shape[3 - x.ndim :], y.flat)

    def reference(*given: Grid | None, **named: Any) -> Any:
        for name in options:
            value = named.get(name)
            if value is not None and not isinstance(value, str):
                one = value[0] if isinstance(value, tuple) else value
                named[name] = (0 if "padding" in name else 1, one)
        x = given[0]
        assert x is not None
        y = f(*(high(g, i) for i, g in enumerate(given)), **named)
        return tuple(flat(part, x) for part in y) if isinstance(y, tuple) else flat(y, x)

    return reference


_CONV = ("stride", "padding", "output_padding", "dilation")
_POOL = ("kernel_size", "stride", "padding", "dilation")

REFERENCES: dict[str, Callable[..., Any]] = {
    "matmul": _matmul,
    "linear": _linear,
    "conv1d": _on_lines(_conv2d, _CONV),
    "conv2d": _conv2d,
    "conv_transpose1d": _on_lines(_conv_transpose2d, _CONV),
    "conv_transpose2d": _conv_transpose2d,
    "max_pool2d_with_indices": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "max_pool1d_with_indices": _on_lines(_max_pool2d, _POOL),
    "avg_pool1d": _on_lines(_avg_pool2d, _POOL),
}
