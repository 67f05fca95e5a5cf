"""The tree along which the parts of a batch are added: it depends on their number alone.

A node is a stretch of parts, and its sum is that of its two halves, left + right. The left one has
the largest power of two of parts that is smaller than the node's number. Who holds which part
changes nothing in it, so any number of ranks adds the same numbers in the same order.
"""

from __future__ import annotations

from typing import NamedTuple


class Run(NamedTuple):
    """Parts low, low + 1, ..., high - 1: those of a rank, or a node of the tree."""

    low: int
    high: int


def middle(low: int, high: int) -> int:
    """Where a node of at least 2 parts is halved: low + the largest power of two < high - low."""
    return low + (1 << ((high - low - 1).bit_length() - 1))


def runs(parts: int, size: int) -> tuple[Run, ...]:
    """For each of `size` ranks its parts: rank i has parts·i//size ... parts·(i+1)//size - 1."""
    return tuple(Run(parts * i // size, parts * (i + 1) // size) for i in range(size))


def nodes(parts: int, run: Run) -> tuple[Run, ...]:
    """The largest nodes of the tree over `parts` parts that lie whole in a run, from the left.

    Together they are the run: each of its parts lies in one of them.
    """
    return _inside(Run(0, parts), run) if run.low < run.high else ()


def _inside(node: Run, run: Run) -> tuple[Run, ...]:
    if run.low <= node.low and node.high <= run.high:
        return (node,)
    if node.high <= run.low or run.high <= node.low:
        return ()
    half = middle(*node)
    return _inside(Run(node.low, half), run) + _inside(Run(half, node.high), run)
