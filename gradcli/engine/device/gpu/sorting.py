"""Sorting: launches that put rows in order (csrc/gpu/index/sort.gc), as a part of several calls."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import Arg, Draft, Scratch, over

_TILE = 1024  # TILE in sort.gc


def sort(
    call: Draft, x: Arg, rows: int, n: int, suffix: str = "", descending: bool = False
) -> tuple[Scratch, Scratch]:
    """Sort (rows, n) elements in scratch memory: the keys in order, and where each has been."""
    count, tiles = rows * n, -(-n // _TILE)
    keys = call.scratch(8 * count), call.scratch(8 * count)
    indices = call.scratch(4 * count), call.scratch(4 * count)
    now, spare = zip(keys, indices, strict=True)
    sizes, grid = (n, tiles, descending), (rows * tiles, 1, 1)
    call.launch("sort_tiles", grid, x, *now, *sizes, family="sort", suffix=suffix)
    width = _TILE
    while width < n:
        ends = *now, *spare, count, n, width
        call.launch("sort_merge", over(count), *ends, family="sort", suffix=suffix)
        now, spare, width = spare, now, 2 * width
    return now
