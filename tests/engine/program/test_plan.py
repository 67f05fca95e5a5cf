"""The arena: results take the place of inputs that nobody needs any more, and no other place."""

from __future__ import annotations

from typing import Any

import pytest
from replays import program, pure

from gradcli import engine

SIDE = 64
NBYTES = SIDE * SIDE * 4
engine.manual_seed(2)
X = engine.randn(SIDE, SIDE)


def arena(step: Any) -> int:
    """In tensors of the size of X."""
    nbytes = program(pure(step), X, passes=()).arena_bytes
    assert nbytes % NBYTES == 0
    return nbytes // NBYTES


def twice_read(x: Any) -> Any:
    y = x * 2
    return (y.exp() + y).exp()


def read_by_two_at_once(x: Any) -> Any:
    y = x * 2
    return y.exp() + y.sigmoid()


def transposed(x: Any) -> Any:
    y = x * 2
    return (y + y.t()).exp()


def both_ways(x: Any) -> Any:
    y = x * 2
    return (y * y).exp()


def broadcast(x: Any) -> Any:
    return (x[0] * 2 + x).exp()[0]


@pytest.mark.parametrize(
    ("step", "tensors"),
    [
        (lambda x: x.exp(), 0),
        (lambda x: ((x * 2).exp() + 1).sigmoid(), 1),
        (lambda x: (x * 2).exp().double().exp()[0], 3),
        (twice_read, 2),
        (read_by_two_at_once, 3),
        (transposed, 2),
        (both_ways, 1),
    ],
)
def test_a_result_takes_the_place_of_an_input_that_ends(step: Any, tensors: int) -> None:
    assert arena(step) == tensors


def test_a_row_that_meets_all_rows_keeps_its_place() -> None:
    assert program(pure(broadcast), X, passes=()).arena_bytes == NBYTES + SIDE * 4
