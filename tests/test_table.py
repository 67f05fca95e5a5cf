"""Rows of cells as lines of some width."""

from __future__ import annotations

import pytest

from gradcli.cells import cells
from gradcli.table import Column, lines, shown_columns

COLUMNS = (Column(28, "text", gap=0), Column(10, rank=2), Column(10, rank=1), Column(10))
ROWS = (
    ("layer", "GFLOP/s", "GB/s", "ms"),
    ("0 conv 16", "123.45", "6.70", "0.1234"),
    ("a layer with a name of 34 characters", "1.00", "", "1234.5678"),
)


def test_no_terminal_gets_every_cell_whole() -> None:
    assert lines(COLUMNS, ROWS, None) == [
        f"{name:<28} {a:>10} {b:>10} {c:>10}" for name, a, b, c in ROWS
    ]


@pytest.mark.parametrize("width", [*range(12, 90), 200])
def test_every_line_fits_and_figures_are_whole(width: int) -> None:
    shown = lines(COLUMNS, ROWS, width)
    assert max(map(cells, shown)) <= width
    if width > 12:
        assert [line.split()[-1] for line in shown] == ["ms", "0.1234", "1234.5678"]
    for line in shown:
        for figure in line.split()[1:]:
            assert figure.endswith("…") or any(figure in cell for row in ROWS for cell in row)


def test_the_least_needed_columns_go_first() -> None:
    heads = [lines(COLUMNS, ROWS, width)[0].split() for width in (90, 40, 30)]
    assert heads == [
        ["layer", "GFLOP/s", "GB/s", "ms"],
        ["layer", "GB/s", "ms"],
        ["layer", "ms"],
    ]


def test_a_text_is_shortened_to_what_the_figures_leave() -> None:
    assert lines(COLUMNS, ROWS, 30)[2] == "a layer with a name… 1234.5678"


def test_a_label_keeps_its_end_and_a_name_is_whole() -> None:
    columns = (Column(1, "label", gap=0), Column(1))
    assert lines(columns, [("pictures/of/light/7.png", "0")], 14) == ["pictur…7.png 0"]
    columns = (Column(4, "name", gap=0), Column(1, "text"))
    rows = [("add", "the sum of both"), ("addmm", "the sum of a product")]
    assert lines(columns, rows, 14) == ["add  the sum …", "addmm the sum…"]


def test_a_row_says_that_its_end_is_left_out() -> None:
    columns = (Column(1, "text", gap=0), *(Column(3, rank=n) for n in range(9)))
    assert lines(columns, [("a", *map(str, range(9)))], 12) == ["a 0 1 2 3 …"]
    assert shown_columns(columns, [("a", *map(str, range(9)))], 12) == 5


def test_wide_characters_take_two_cells() -> None:
    columns = (Column(1, "text", gap=0), Column(1))
    assert lines(columns, [("日本", "1"), ("abc", "22")], 20) == ["日本  1", "abc  22"]


def test_a_terminal_is_not_steered_by_a_cell() -> None:
    columns = (Column(0, "text", gap=0),)
    assert lines(columns, [("\x1b[31mred",)], 20) == ["\\x1b[31mred"]
    assert lines(columns, [("\x1b[31mred",)], None) == ["\x1b[31mred"]
