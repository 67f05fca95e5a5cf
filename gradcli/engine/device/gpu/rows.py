"""Rows: how short rows are shared by threads that keep them in registers (csrc/gpu/rows.h)."""

from __future__ import annotations

from typing import NamedTuple

from gradcli.engine.device.gpu.launch import THREADS
from gradcli.engine.device.gpu.lines import power_of_two

PER_THREAD = 8  # elements that a thread keeps: EACH_KEPT in rows.h
_WARP = 32


class RowGroups(NamedTuple):
    """Threads of a row, threads of a block, and blocks for all rows."""

    members: int
    threads: int
    blocks: int


def rows_of(count: int, n: int, most: int) -> RowGroups | None:
    """For `count` rows of n; None where a block of `most` threads cannot keep a row."""
    if n > PER_THREAD * most:
        return None
    members = power_of_two(-(-n // PER_THREAD), most)
    threads = members if members > _WARP else THREADS
    return RowGroups(members, threads, -(-count * members // threads))
