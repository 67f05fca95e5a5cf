"""References of what puts elements in another order, in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from grid import Grid


def _flip(x: Grid, dims: Sequence[int]) -> Grid:
    turned = {d % x.ndim for d in dims}
    return Grid.from_function(
        x.shape,
        lambda at: x[tuple(x.shape[d] - 1 - i if d in turned else i for d, i in enumerate(at))],
    )


def _roll(x: Grid, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Grid:
    if dims is None:
        n = len(x.flat)
        by = shifts if isinstance(shifts, int) else shifts[0]
        return Grid(x.shape, [x.flat[(i - by) % n] for i in range(n)])
    moved = [0] * x.ndim
    pairs = (
        zip([dims], [shifts], strict=True)
        if isinstance(dims, int)
        else zip(dims, shifts, strict=True)
    )
    for d, shift in pairs:
        moved[d % x.ndim] += shift
    return Grid.from_function(
        x.shape,
        lambda at: x[tuple((i - m) % n for i, m, n in zip(at, moved, x.shape, strict=True))],
    )


def _diagonal(x: Grid, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Grid:
    a, b = dim1 % x.ndim, dim2 % x.ndim
    down, right = max(0, -offset), max(0, offset)
    count = max(0, min(x.shape[a] - down, x.shape[b] - right))
    rest = [d for d in range(x.ndim) if d not in (a, b)]

    def element(at: tuple[int, ...]) -> Any:
        place = dict(zip(rest, at[:-1], strict=True))
        place[a], place[b] = at[-1] + down, at[-1] + right
        return x[tuple(place[d] for d in range(x.ndim))]

    return Grid.from_function((*(x.shape[d] for d in rest), count), element)


def _diag_embed(x: Grid, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Grid:
    ndim = x.ndim + 1
    a, b = dim1 % ndim, dim2 % ndim
    rest = iter(x.shape[:-1])
    size = x.shape[-1] + abs(offset)
    shape = [size if d in (a, b) else next(rest) for d in range(ndim)]

    def element(at: tuple[int, ...]) -> Any:
        if at[b] - at[a] != offset:
            return 0.0
        others = tuple(i for d, i in enumerate(at) if d not in (a, b))
        return x[(*others, min(at[a], at[b]))]

    return Grid.from_function(shape, element)


def _unfold(x: Grid, dimension: int, size: int, step: int) -> Grid:
    d = dimension % x.ndim
    count = (x.shape[d] - size) // step + 1
    return Grid.from_function(
        (*x.shape[:d], count, *x.shape[d + 1 :], size),
        lambda at: x[(*at[:d], at[d] * step + at[-1], *at[d + 1 : -1])],
    )


def _constant_pad_nd(x: Grid, pad: Sequence[int], value: float = 0) -> Grid:
    front, shape = [0] * x.ndim, list(x.shape)
    for i in range(len(pad) // 2):
        front[-1 - i] = pad[2 * i]
        shape[-1 - i] += pad[2 * i] + pad[2 * i + 1]

    def element(at: tuple[int, ...]) -> float:
        source = tuple(i - begin for i, begin in zip(at, front, strict=True))
        inside = all(0 <= i < n for i, n in zip(source, x.shape, strict=True))
        return x[source] if inside else value

    return Grid.from_function(tuple(shape), element)


REFERENCES: dict[str, Callable[..., Any]] = {
    "constant_pad_nd": _constant_pad_nd,
    "diag_embed": _diag_embed,
    "diagonal": _diagonal,
    "flip": _flip,
    "roll": _roll,
    "unfold": _unfold,
}
