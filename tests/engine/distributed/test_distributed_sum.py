"""Sums over ranks: equal bits with one rank, whatever way the numbers take."""

from __future__ import annotations

from gradcli import engine
from gradcli.engine.distributed import ALONE, Sum


def test_one_rank_has_one_row() -> None:
    one = Sum(7, 100, group=ALONE)
    one.source.copy_(engine.randn(1, 100))
    one.sum()
    assert one.nodes == ((0, 7),)
    assert one.out.tolist() == one.source[0].tolist()
