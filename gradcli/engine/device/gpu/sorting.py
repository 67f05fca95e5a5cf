"""Sorting: launches that put rows in order (csrc/gpu/index/sort.gc), as a part of several calls."""

from __future__ import annotations

from dataclasses import dataclass

from gradcli.engine.device.gpu.launch import Arg, Launch, Scratch, launch, over

FAMILY = "sort"
_TILE = 1024  # TILE in sort.gc
_BYTES = 24  # of scratch for an element: keys and places, twice


@dataclass(frozen=True)
class Sorted:
    """Launches, and where they leave the keys and places of all rows in order."""

    launches: tuple[Launch, ...]
    keys: Scratch
    places: Scratch
    end: int  # of the scratch memory they use


def sort(x: Arg, suffix: str, rows: int, n: int, begin: int, descending: bool = False) -> Sorted:
    """Sort (rows, n) elements with scratch memory from `begin` on, a multiple of 8."""
    count, tiles = rows * n, -(-n // _TILE)
    now = Scratch(begin), Scratch(begin + 16 * count)
    other = Scratch(begin + 8 * count), Scratch(begin + 20 * count)
    grid = (rows * tiles, 1, 1)
    every = [launch(FAMILY, "sort_tiles", suffix, grid, x, *now, n, tiles, int(descending))]
    width = _TILE
    while width < n:
        sizes = count, n, width
        every.append(launch(FAMILY, "sort_merge", suffix, over(count), *now, *other, *sizes))
        now, other, width = other, now, 2 * width
    return Sorted(tuple(every), *now, begin + -(-_BYTES * count // 8) * 8)
