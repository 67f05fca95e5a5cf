"""Slices that differ, in order and one behind the other; and elements among others."""

from itertools import groupby
from math import nan

import pytest

from gradcli import engine


def slices(x: engine.Tensor, dim: int) -> list[list[float]]:
    return [x.select(dim, i).flatten().tolist() for i in range(x.shape[dim])]


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("columns", [1, 2, 3, 5])
def test_unique_slices_are_those_of_a_sorted_set(dim: int, columns: int) -> None:
    engine.manual_seed(columns)
    x = engine.randint(0, 2, (6, columns, 3))
    rows = slices(x, dim)
    values, inverse, counts = engine.unique(x, return_inverse=True, return_counts=True, dim=dim)
    expected = [list(row) for row in sorted({tuple(row) for row in rows})]
    assert slices(values, dim) == expected
    assert [expected[i] for i in inverse.tolist()] == rows
    assert counts.tolist() == [rows.count(row) for row in expected]


@pytest.mark.parametrize("dim", [0, -2])
def test_consecutive_slices_are_grouped(dim: int) -> None:
    engine.manual_seed(0)
    x = engine.randint(0, 2, (9, 2))
    values, counts = engine.unique_consecutive(x, return_counts=True, dim=dim)
    groups = [(row, len(list(same))) for row, same in groupby(x.tolist())]
    assert list(zip(values.tolist(), counts.tolist(), strict=True)) == groups


def test_the_gradient_goes_to_the_first_of_equal_slices() -> None:
    x = engine.tensor([[2.0, 1.0], [0.0, 1.0], [2.0, 1.0]], requires_grad=True)
    engine.unique(x, dim=0).sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]


def test_elements_are_found_among_others_or_not() -> None:
    x = engine.tensor([[1.0, nan, 3.0], [0.5, 7.0, -1.0]])
    among = engine.tensor([7.0, 1.0, nan])
    found = [[True, False, False], [False, True, False]]
    assert engine.isin(x, among).tolist() == found
    assert engine.isin(x, among, invert=True).tolist() == [[not y for y in row] for row in found]
    assert engine.isin(3, engine.tensor([1, 3])).item() is True
    assert engine.isin(engine.tensor([1, 2]), 2.0).tolist() == [False, True]
