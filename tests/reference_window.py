"""References of adaptive pooling and interpolation, in plain Python float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from grid import Grid


def _window(i: int, n: int, length: int) -> range:
    return range(i * length // n, -(-(i + 1) * length // n))


def _adaptive(dims: int, pick: Callable[[list[tuple[float, int]]], Any]) -> Callable[..., Grid]:
    """`pick` makes an output of the numbers of its window, each with its place in the plane."""

    def pooled(x: Grid, output_size: Any) -> Grid:
        given = output_size if isinstance(output_size, tuple) else (output_size,) * dims
        size = [
            length if s is None else s for s, length in zip(given, x.shape[-dims:], strict=True)
        ]
        width = x.shape[-1]

        def at(place: tuple[int, ...]) -> Any:
            front, own = place[:-dims], place[-dims:]
            windows = [_window(*row) for row in zip(own, size, x.shape[-dims:], strict=True)]
            rows = windows[0] if dims == 2 else [None]
            seen = [
                (x[(*front, i, j)], i * width + j) if dims == 2 else (x[(*front, j)], j)
                for i in rows
                for j in windows[-1]
            ]
            return pick(seen)

        return Grid.from_function([*x.shape[:-dims], *size], at)

    return pooled


def _mean(seen: list[tuple[float, int]]) -> float:
    return sum(value for value, _ in seen) / len(seen)


def _largest(dims: int) -> Callable[..., tuple[Grid, Grid]]:
    values = _adaptive(dims, lambda seen: max(seen)[0])
    places = _adaptive(dims, lambda seen: max(seen)[1])
    return lambda x, output_size: (values(x, output_size), places(x, output_size))


def _shares(i: int, length: int, wanted: int, scale: float | None, mode: str, corners: Any) -> Any:
    """Which places of the input an output is made of, and how much of each."""
    step = length / wanted if scale is None else 1 / scale
    if mode == "nearest":
        return [(min(math.floor(i * step), length - 1), 1.0)]
    if mode == "nearest-exact":
        return [(min(math.floor((i + 0.5) * step), length - 1), 1.0)]
    if corners:
        place = i * (length - 1) / (wanted - 1) if wanted > 1 else 0.0
    else:
        place = max((i + 0.5) * step - 0.5, 0.0)
    first = min(math.floor(place), length - 1)
    return [(first, 1 - (place - first)), (min(first + 1, length - 1), place - first)]


def _interpolate(
    x: Grid,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Grid:
    dims = x.ndim - 2
    many = [v if isinstance(v, tuple) else (v,) * dims for v in (size, scale_factor)]
    scales = many[1]
    wanted = [
        s if f is None else math.floor(length * f)
        for s, f, length in zip(many[0], scales, x.shape[2:], strict=True)
    ]
    if recompute_scale_factor:
        scales = (None,) * dims

    def at(place: tuple[int, ...]) -> float:
        shares = [
            _shares(i, length, m, f, mode, align_corners)
            for i, length, m, f in zip(place[2:], x.shape[2:], wanted, scales, strict=True)
        ]
        if dims == 1:
            return sum(share * x[(*place[:2], j)] for j, share in shares[0])
        return sum(
            down * across * x[(*place[:2], i, j)]
            for i, down in shares[0]
            for j, across in shares[1]
        )

    return Grid.from_function([*x.shape[:2], *wanted], at)


REFERENCES: dict[str, Callable[..., Any]] = {
    "adaptive_avg_pool1d": _adaptive(1, _mean),
    "adaptive_avg_pool2d": _adaptive(2, _mean),
    "adaptive_max_pool1d_with_indices": _largest(1),
    "adaptive_max_pool2d_with_indices": _largest(2),
    "interpolate": _interpolate,
}
