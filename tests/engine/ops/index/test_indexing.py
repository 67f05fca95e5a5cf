"""Indexing with tensors, masks and lists, as torch does it."""

from __future__ import annotations

from typing import Any

import pytest

from gradcli import engine
from gradcli.errors import DTypeError, RangeError, ShapeError

X = engine.arange(24).reshape(2, 3, 4)
I = engine.tensor  # noqa: E741


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (I([1, 0, -1]), [1, 0, 1]),
        ([1, 0], [1, 0]),
        (I([[0], [1]]), [[0], [1]]),
        (I([True, False]), [0]),
        ([False, True], [1]),
        ([], []),
    ],
)
def test_rows_come_in_the_order_of_the_index(index: Any, expected: Any) -> None:
    rows = engine.tensor([0, 1])
    assert rows[index].tolist() == expected


def test_one_element_still_is_a_list_of_rows() -> None:
    assert X[I([1])].shape == (1, 3, 4)
    assert X[I([1], dtype=engine.int32)].shape == (1, 3, 4)
    assert X[I(1)].shape == (3, 4)


@pytest.mark.parametrize(
    ("index", "places"),
    [
        ((slice(None), I([2, 0])), lambda x: [[r[2], r[0]] for r in x]),
        ((Ellipsis, I([3])), lambda x: [[[c[3]] for c in r] for r in x]),
        ((0, I([2, 0])), lambda x: [x[0][2], x[0][0]]),
        ((I([0, 1]), I([2, 1])), lambda x: [x[0][2], x[1][1]]),
        ((I([0, 1]), None), lambda x: [[x[0]], [x[1]]]),
        ((I([[1], [0]]), I([2, 1])), lambda x: [[x[1][2], x[1][1]], [x[0][2], x[0][1]]]),
        ((slice(None), I([1, 2]), I([-1, 0])), lambda x: [[r[1][3], r[2][0]] for r in x]),
    ],
)
def test_index_tensors_stand_among_slices(index: Any, places: Any) -> None:
    assert X[index].tolist() == places(X.tolist())


def test_masks_pick_elements_in_order() -> None:
    assert X[X > 20].tolist() == [21, 22, 23]
    assert X[X[:, :, 0] == 8].tolist() == [[8, 9, 10, 11]]
    assert X[X > 99].shape == (0,)
    assert X[:, I([True, False, True])].shape == (2, 2, 4)


def test_gradients_of_repeated_rows_add_up() -> None:
    x = engine.zeros(3, 2, requires_grad=True)
    x[I([0, 2, 0, -1]), I([1, 0, 1, 0])].sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[0, 2], [0, 0], [2, 0]]


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (I([2]), RangeError, r"index 2 at .* outside -2..1 of dimension 0"),
        (
            (I([0]), I([-4])),
            RangeError,
            r"index -4 .*outside -3..2 of dimension 1, which has size 3",
        ),
        (I([1.0]), DTypeError, "must be int64, int32 or bool"),
        (I([True, False, True]), ShapeError, "a mask"),
        ((I([0]), 0, 0, 0), RangeError, "4 indices for 3"),
        ((I([0, 1]), I([0, 1, 2])), ShapeError, "do not broadcast"),
        (slice(0, 1.5), DTypeError, "slice indices"),
    ],
)
def test_wrong_indices_are_refused(index: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        X[index]


def test_a_ninth_dimension_is_refused() -> None:
    with pytest.raises(ShapeError, match="at most 8"):
        engine.zeros(*[1] * 8)[None]
