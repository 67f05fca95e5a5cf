"""References of gather, scatter and sorting, in plain Python."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any

from grid import Grid, indices


def _moved(at: tuple[int, ...], d: int, to: int) -> tuple[int, ...]:
    return (*at[:d], to, *at[d + 1 :])


def _gather(x: Grid, index: Grid, dim: int) -> Grid:
    d = dim % max(x.ndim, 1)
    return Grid.from_function(
        index.shape, lambda at: x[_moved(at, d, index[at])] if at else x.flat[0]
    )


def _joined(x: Grid, index: Grid, src: Grid, dim: int, join: Callable[..., Any]) -> Grid:
    """Element by element in the order of the index; join(old, new)."""
    d = dim % max(x.ndim, 1)
    made = dict(zip(indices(x.shape), x.flat, strict=True))
    for at in indices(index.shape):
        to = _moved(at, d, index[at]) if at else ()
        made[to] = join(made[to], src[at])
    return Grid(x.shape, list(made.values()))


def _scatter(x: Grid, index: Grid, src: Grid, dim: int) -> Grid:
    return _joined(x, index, src, dim, lambda old, new: new)


def _scatter_add(x: Grid, index: Grid, src: Grid, dim: int) -> Grid:
    return _joined(x, index, src, dim, lambda old, new: old + new)


def _scatter_reduce(
    x: Grid, index: Grid, src: Grid, dim: int, reduce: str, include_self: bool = True
) -> Grid:
    first = Grid(x.shape, [[v] if include_self else [] for v in x.flat])
    lists = _joined(first, index, src, dim, lambda old, new: [*old, new])
    join: Callable[..., Any] = {
        "sum": math.fsum,
        "mean": lambda v: math.fsum(v) / len(v),
        "prod": math.prod,
        "amax": max,
        "amin": min,
    }[reduce]
    pairs = zip(lists.flat, x.flat, strict=True)
    return Grid(x.shape, [join(values) if values else old for values, old in pairs])


def _ordered(x: Grid, dim: int, k: int | None, descending: bool) -> tuple[Grid, Grid]:
    d = dim % max(x.ndim, 1)
    if not x.ndim:
        return Grid((), x.flat), Grid((), [0])
    shape = _moved(x.shape, d, x.shape[d] if k is None else k)

    def place(at: tuple[int, ...]) -> int:
        line = [x[_moved(at, d, i)] for i in range(x.shape[d])]
        order = sorted(range(len(line)), key=lambda i: -line[i] if descending else line[i])
        return order[at[d]]

    places = Grid.from_function(shape, place)
    return Grid.from_function(shape, lambda at: x[_moved(at, d, places[at])]), places


def _sort(x: Grid, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    return _ordered(x, dim, None, descending)


def _topk(x: Grid, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    return _ordered(x, dim, k, largest)


def _searchsorted(
    rows: Grid, x: Grid, out_int32: bool = False, right: bool = False, side: str | None = None
) -> Grid:
    find = bisect_right if right or side == "right" else bisect_left
    n = rows.shape[-1]

    def place(at: tuple[int, ...]) -> int:
        front = at[:-1] if rows.ndim > 1 else ()
        return find([rows[(*front, i)] for i in range(n)], x[at])

    return Grid.from_function(x.shape, place)


def _along(x: Grid, index: Grid, source: Grid, dim: int, join: Callable[..., Any]) -> Grid:
    """Slices of source joined with those that index names."""
    d = dim % x.ndim
    spread = Grid.from_function(source.shape, lambda at: index.flat[at[d]])
    return _joined(x, spread, source, dim, join)


def _index_add(x: Grid, index: Grid, source: Grid, dim: int, alpha: float = 1) -> Grid:
    return _along(x, index, source, dim, lambda old, new: old + alpha * new)


def _index_copy(x: Grid, index: Grid, source: Grid, dim: int) -> Grid:
    return _along(x, index, source, dim, lambda old, new: new)


def _flat_index(index: Grid, before: Grid | None, size: int) -> Grid:
    front = [0] * len(index.flat) if before is None else before.flat
    pairs = zip(front, index.flat, strict=True)
    return Grid((len(front),), [a * size + range(size)[i] for a, i in pairs])


def _nonzero_places(x: Grid, count: int) -> Grid:
    found = [at for at, v in zip(indices(x.shape), x.flat, strict=True) if v][:count]
    found += [(0,) * x.ndim] * (count - len(found))
    return Grid((count, x.ndim), [i for at in found for i in at])


REFERENCES: dict[str, Callable[..., Any]] = {
    "flat_index": _flat_index,
    "gather": _gather,
    "index_add": _index_add,
    "index_copy": _index_copy,
    "nonzero_places": _nonzero_places,
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "scatter_reduce": _scatter_reduce,
    "searchsorted": _searchsorted,
    "sort": _sort,
    "topk": _topk,
}
