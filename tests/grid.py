"""Grid: numbers with a shape in plain Python, in which the references are written."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any


class Grid:
    """Numbers in row-major order with a shape; indexed by tuples."""

    def __init__(self, shape: Sequence[int], flat: Sequence[Any]) -> None:
        self.shape = tuple(shape)
        self.flat = list(flat)
        assert len(self.flat) == math.prod(self.shape)

    @classmethod
    def from_function(cls, shape: Sequence[int], f: Callable[[tuple[int, ...]], Any]) -> Grid:
        """Fill by index: f((i, j, ...))."""
        return cls(shape, [f(at) for at in indices(shape)])

    def __getitem__(self, at: tuple[int, ...]) -> Any:
        i = 0
        for size, a in zip(self.shape, at, strict=True):
            assert 0 <= a < size
            i = i * size + a
        return self.flat[i]

    @property
    def ndim(self) -> int:
        return len(self.shape)


def indices(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """All index tuples of a shape, in row-major order."""
    return list(itertools.product(*(range(size) for size in shape)))


def broadcast_shape(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    n = max(len(a), len(b))
    left, right = (1,) * (n - len(a)) + tuple(a), (1,) * (n - len(b)) + tuple(b)
    return tuple(y if x == 1 else x for x, y in zip(left, right, strict=True))


def pick(grid: Grid, at: tuple[int, ...]) -> Any:
    """The element that broadcasting shows at `at`."""
    at = at[len(at) - grid.ndim :]
    return grid[tuple(0 if size == 1 else a for size, a in zip(grid.shape, at, strict=True))]


def elementwise(f: Callable[..., Any]) -> Callable[..., Grid]:
    """A reference for f of one number."""
    return lambda x, **options: Grid(x.shape, [f(v, **options) for v in x.flat])


def pairwise(f: Callable[..., Any]) -> Callable[..., Grid]:
    """A reference for f of two broadcast numbers, and options by name."""

    def reference(a: Grid, b: Grid, **options: Any) -> Grid:
        shape = broadcast_shape(a.shape, b.shape)
        return Grid.from_function(shape, lambda at: f(pick(a, at), pick(b, at), **options))

    return reference
