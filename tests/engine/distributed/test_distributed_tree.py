"""The tree of parts against its definition, written down once more without thrift."""

from __future__ import annotations

import pytest

from gradcli.engine.distributed import tree
from gradcli.engine.distributed.tree import Run


def every_node(low: int, high: int) -> list[Run]:
    """A node and all below it; the left half has the largest power of two below its number."""
    if high - low == 1:
        return [Run(low, high)]
    power = max(2**k for k in range(10) if 2**k < high - low)
    halves = every_node(low, low + power), every_node(low + power, high)
    return [Run(low, high), *halves[0], *halves[1]]


@pytest.mark.parametrize("size", range(1, 17))
def test_runs_are_all_parts_in_order(size: int) -> None:
    for parts in range(1, 65):
        cut = [part for run in tree.runs(parts, size) for part in range(*run)]
        assert cut == list(range(parts))
        lengths = {run.high - run.low for run in tree.runs(parts, size)}
        assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("size", range(1, 17))
def test_nodes_are_the_largest_that_lie_whole_in_a_run(size: int) -> None:
    for parts in range(1, 65):
        every = every_node(0, parts)
        for run in tree.runs(parts, size):
            nodes = tree.nodes(parts, run)
            assert [part for node in nodes for part in range(*node)] == list(range(*run))
            inside = [one for one in every if run.low <= one.low and one.high <= run.high]
            largest = [
                one
                for one in inside
                if not any(o != one and o.low <= one.low and one.high <= o.high for o in inside)
            ]
            assert list(nodes) == sorted(largest)


def test_three_parts_are_two_and_one() -> None:
    assert tree.middle(0, 3) == 2
    assert tree.middle(0, 8) == 4
    assert tree.middle(8, 14) == 12
    assert tree.nodes(6, Run(0, 3)) == (Run(0, 2), Run(2, 3))
