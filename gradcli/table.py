"""Rows of cells as lines: whole where a program reads, fitted to the width of a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from gradcli.cells import CUT, cells, printable, shorten
from gradcli.dataclass import dataclass

Content = Literal["figures", "text", "label", "name"]
Row = Sequence[str]

_SHORTENED = ("text", "label")
# A text is shortened to this before a column is left out, and below it only if nothing else helps.
_LEAST_TEXT = 20


@dataclass(frozen=True)
class Column:
    """What stands in a column, and how: `size` cells where there is room, `gap` before them.

    Figures stand on the right and are never shortened. All else stands on the left: a text is
    shortened at its end, a label in its middle, and a name, which may be typed, not at all: a
    long one moves what follows. Where the room is short, columns with a `rank` are left out, the
    highest first. A column of size 0 follows the text before it.
    """

    size: int
    content: Content = "figures"
    gap: int = 1
    rank: int = 0


def lines(columns: Sequence[Column], rows: Sequence[Row], width: int | None) -> list[str]:
    """One line per row; without a terminal (width None) nothing is shortened.

    On a terminal, a row ends in … if its last columns are left out.
    """
    if width is None:
        sizes = {number: column.size for number, column in enumerate(columns)}
        return [_line(columns, row, sizes) for row in rows]
    texts = _printable(rows)
    sizes = _sizes(columns, texts, width)
    more = "" if len(columns) - 1 in sizes else f" {CUT}"
    return [shorten(_line(columns, row, sizes, fit=True) + more, width) for row in texts]


def shown_columns(columns: Sequence[Column], rows: Sequence[Row], width: int | None) -> int:
    """How many of the columns are not left out."""
    return len(columns) if width is None else len(_sizes(columns, _printable(rows), width))


def _printable(rows: Sequence[Row]) -> list[Row]:
    return [[printable(cell) for cell in row] for row in rows]


def _line(columns: Sequence[Column], row: Row, sizes: Mapping[int, int], fit: bool = False) -> str:
    line = ""
    for number, size in sizes.items():
        column, cell = columns[number], row[number]
        if fit and column.content in _SHORTENED:
            cell = shorten(cell, size, with_end=column.content == "label")
        room = " " * (size - cells(cell))
        line = (line if column.size else line.rstrip()) + " " * column.gap
        line += room + cell if column.content == "figures" else cell + room
    return line.rstrip()


def _sizes(columns: Sequence[Column], rows: Sequence[Row], width: int) -> dict[int, int]:
    """The cells of each column that is shown, by its number."""
    longest = {
        number: column.size
        if column.content == "name"
        else max((cells(row[number]) for row in rows), default=0)
        for number, column in enumerate(columns)
    }
    roomy = {number: max(columns[number].size, size) for number, size in longest.items()}
    if _total(columns, roomy) <= width:
        return roomy
    sizes = dict(longest)
    texts = [number for number, column in enumerate(columns) if column.content in _SHORTENED]
    for number in sorted(longest, key=lambda number: -columns[number].rank):
        least = {n: min(size, _LEAST_TEXT) if n in texts else size for n, size in sizes.items()}
        if columns[number].rank == 0 or _total(columns, least) <= width:
            break
        del sizes[number]
    texts = [number for number in texts if number in sizes]
    while _total(columns, sizes) > width and any(sizes[number] > 1 for number in texts):
        sizes[max(texts, key=sizes.__getitem__)] -= 1
    return sizes


def _total(columns: Sequence[Column], sizes: Mapping[int, int]) -> int:
    """The cells of a line, with what stands for columns that are left out at its end."""
    more = 0 if len(columns) - 1 in sizes else len(CUT) + 1
    return sum(size + columns[number].gap for number, size in sizes.items()) + more
