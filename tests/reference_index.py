"""References of indexing, masks, joins and dropout, in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from grid import Grid, broadcast_shape, pick

WORD = 0xFFFFFFFF


def philox(key: int, counter: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Philox4x32-10: four 32-bit words from a 64-bit key and four 32-bit counters."""
    a, b, c, d = counter
    k, m = key & WORD, key >> 32 & WORD
    for _ in range(10):
        even, odd = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = odd >> 32 ^ b ^ k, odd & WORD, even >> 32 ^ d ^ m, even & WORD
        k, m = k + 0x9E3779B9 & WORD, m + 0xBB67AE85 & WORD
    return a, b, c, d


def random_word(draw: Any, i: int) -> int:
    """Word i of a draw: fills of 64 blocks, and in a fill first word 0 of every block."""
    fill, rest = divmod(i, 256)
    word, block = divmod(rest, 64)
    counter = (fill * 64 + block, draw.number, draw.step & WORD, draw.step >> 32 & WORD)
    return philox(draw.key, counter)[word]


def _dropout(
    x: Grid, p: float = 0.5, training: bool = True, draw: Any = None, inplace: bool = False
) -> Grid:
    if not training:
        return x
    scale = 1 / (1 - p) if p < 1 else 0.0
    limit = min(int(p * 2**32), WORD)
    kept = [random_word(draw, i) >= limit for i in range(len(x.flat))]
    return Grid(x.shape, [v * (scale if k else 0.0) for v, k in zip(x.flat, kept, strict=True)])


def _rand_at(state: Grid, draws: Grid, count: int) -> Grid:
    key, step, first = state.flat

    def unit(at: tuple[int, ...]) -> float:
        counter = (at[1] % 64, first + draws.flat[at[0]] & WORD, step & WORD, step >> 32)
        return (philox(key, counter)[at[1] // 64] >> 8) / 2**24

    return Grid.from_function((len(draws.flat), count), unit)


def _affine(x: Grid, maps: Grid) -> Grid:
    """The sum over all pixels of how near they are: 1 - distance in each direction."""
    rows, columns = x.shape[2:]

    def near(place: float, pixel: int) -> float:
        return max(0.0, 1 - abs(place - pixel))

    def element(at: tuple[int, ...]) -> float:
        image, channel, i, j = at
        m = [maps[(image, k)] for k in range(6)]
        row, column = m[0] * i + m[1] * j + m[2], m[3] * i + m[4] * j + m[5]
        return sum(
            near(row, r) * near(column, c) * x[(image, channel, r, c)]
            for r in range(rows)
            for c in range(columns)
        )

    return Grid.from_function(x.shape, element)


def _index_select(x: Grid, index: Grid, dim: int) -> Grid:
    dim %= x.ndim
    shape = (*x.shape[:dim], len(index.flat), *x.shape[dim + 1 :])
    return Grid.from_function(shape, lambda at: x[(*at[:dim], index.flat[at[dim]], *at[dim + 1 :])])


def _embedding(indices: Grid, weight: Grid, padding_idx: int | None = None) -> Grid:
    shape = (*indices.shape, weight.shape[1])
    return Grid.from_function(shape, lambda at: weight[(indices[at[:-1]], at[-1])])


def _where(condition: Grid, input: Grid, other: Grid) -> Grid:
    shape = broadcast_shape(condition.shape, broadcast_shape(input.shape, other.shape))
    return Grid.from_function(
        shape, lambda at: pick(input, at) if pick(condition, at) else pick(other, at)
    )


def _tril(x: Grid, diagonal: int = 0) -> Grid:
    return Grid.from_function(x.shape, lambda at: x[at] if at[-1] - at[-2] <= diagonal else 0)


def _triu(x: Grid, diagonal: int = 0) -> Grid:
    return Grid.from_function(x.shape, lambda at: x[at] if at[-1] - at[-2] >= diagonal else 0)


def _join(a: Grid, b: Grid, dim: int) -> Grid:
    dim %= a.ndim
    size = a.shape[dim]

    def element(at: tuple[int, ...]) -> Any:
        i = at[dim]
        if i < size:
            return a[at]
        return b[(*at[:dim], i - size, *at[dim + 1 :])]

    return Grid.from_function((*a.shape[:dim], size + b.shape[dim], *a.shape[dim + 1 :]), element)


def _split(x: Grid, split_size: int | Sequence[int], dim: int = 0) -> tuple[Grid, ...]:
    dim %= x.ndim
    sizes: list[int] = []
    if isinstance(split_size, int):
        left = x.shape[dim]
        while left > 0 or not sizes:
            sizes.append(min(split_size, left))
            left -= split_size
    else:
        sizes = list(split_size)

    def part(begin: int, size: int) -> Grid:
        shape = (*x.shape[:dim], size, *x.shape[dim + 1 :])
        return Grid.from_function(shape, lambda i: x[(*i[:dim], i[dim] + begin, *i[dim + 1 :])])

    return tuple(part(sum(sizes[:k]), size) for k, size in enumerate(sizes))


REFERENCES: dict[str, Callable[..., Any]] = {
    "affine": _affine,
    "dropout": _dropout,
    "rand_at": _rand_at,
    "embedding": _embedding,
    "index_select": _index_select,
    "join": _join,
    "split": _split,
    "tril": _tril,
    "triu": _triu,
    "where": _where,
}
