"""What columns of a table are taken for, where nobody says."""

from __future__ import annotations

import pytest

from gradcli.data.column_kinds import ColumnKind, is_of_classes, kind_of_column

ROWS = 40


@pytest.mark.parametrize(
    ("name", "cells", "kind"),
    [
        ("area", [f"{i * i / 7:.3f}" for i in range(ROWS)], "numeric"),  # each another one
        ("area", ["", "NA", "nan", *(f"{i % 9}.5" for i in range(ROWS))], "numeric"),
        ("rooms", [str(i % 3) for i in range(ROWS)], "numeric"),
        ("income", [str(20_000 + 37 * i * i) for i in range(ROWS)], "numeric"),
        ("city", [("Lyon", "Nice")[i % 2] for i in range(ROWS)], "category"),
        ("garage", ["yes", "no", ""] * 13, "category"),
        ("grade", ["A", "1", "2"] * 13, "category"),  # a word among numbers
        ("", ["x", *["y"] * 20], "category"),
        ("big", ["1e39", "1"] * 20, "category"),  # no number that is computed in
    ],
)
def test_a_column_is_numbers_or_categories(name: str, cells: list[str], kind: str) -> None:
    assert kind_of_column(name, cells).kind == kind


@pytest.mark.parametrize(
    ("name", "cells", "why"),
    [
        ("note", [f"text {i}" for i in range(ROWS)], "another text in every row"),
        ("note", [f"text {i // 2}" for i in range(ROWS)] + ["z"], "text with 21 different"),
        ("zip", [f"z{i % 101}" for i in range(1000)], "text with 101 different values in 1000"),
        ("empty", ["", "NA", "nan"] * 4, "no value"),
        ("same", ["3"] * ROWS, "the same value in every row"),
        ("checked", ["yes", ""] * ROWS, "one value and gaps"),  # a gap is filled with the mean
        ("row", [str(i) for i in range(ROWS)], "another number in every row"),
        ("anything", [str(500 - i) for i in range(ROWS)], "another number in every row"),
        ("customer_id", [str(i * i) for i in range(ROWS)], "another number in every row"),
        ("orderId", [str(i * i) for i in range(ROWS)], "another number in every row"),
        ("Unnamed: 0", [str(i * i) for i in range(ROWS)], "another number in every row"),
    ],
)
def test_a_column_that_teaches_nothing_says_why(name: str, cells: list[str], why: str) -> None:
    made = kind_of_column(name, cells)
    assert made.kind == "unused"
    assert made.reason.startswith(why)


def test_gaps_and_values_are_counted() -> None:
    made = kind_of_column("x", ["1", "", "2", "NA", "1"])
    assert made == ColumnKind("x", "numeric", "", gaps=2, distinct=2, whole=True)


@pytest.mark.parametrize(
    ("cells", "classes"),
    [
        (["a", "b"] * 20, True),
        (["0", "1"] * 20, True),
        ([str(i % 8) for i in range(ROWS)], True),
        ([str(i % 9) for i in range(ROWS)], False),  # fewer than five rows of each
        ([str(i % 21) for i in range(1000)], False),
        (["0.5", "1.5"] * 20, False),
    ],
)
def test_a_target_is_classes_or_numbers(cells: list[str], classes: bool) -> None:
    assert is_of_classes(kind_of_column("y", cells), len(cells)) is classes
