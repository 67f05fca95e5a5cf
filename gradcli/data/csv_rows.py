"""CSV text into rows of cells: strict RFC 4180, every mistake with its row and column."""

from __future__ import annotations

import re
from typing import NoReturn

from gradcli.data.files import text_of
from gradcli.errors import DataError
from gradcli.wording import quantity

FIELD_LIMIT = 1 << 20  # characters in one cell
COLUMN_LIMIT = 16384
_TOO_LONG = f"a cell of more than {FIELD_LIMIT} characters"


def parse_rows(data: bytes, source: str, delimiter: str = ",") -> list[list[str]]:
    """All rows of a table, the header first; each has as many cells as the header.

    A byte order mark, CRLF, line breaks inside quotes and empty lines at the end are accepted.
    """
    return _Parser(text_of(data, source), source, delimiter).rows()


class _Parser:
    """One pass over the text, cell by cell."""

    def __init__(self, text: str, source: str, delimiter: str) -> None:
        self.text = text
        self.source = source
        self.delimiter = delimiter
        d = re.escape(delimiter)
        # Possessive and bounded: the time grows with the text and no faster.
        self.bare = re.compile(rf'[^"{d}\r\n\0]{{0,{FIELD_LIMIT}}}+')
        self.stop = re.compile(rf"{d}|\r\n|\n|\r|\Z")

    def rows(self) -> list[list[str]]:
        """Every row, the header first."""
        rows: list[list[str]] = []
        blank = 0
        position, end = 0, len(self.text)
        while position < end:
            number = len(rows) + blank + 1
            row, position = self.row(position, number)
            if row == [""]:
                blank += 1
                continue
            if rows and blank:
                self.refuse(number - blank, 1, "an empty line inside the table")
            if rows and len(row) != len(rows[0]):
                what = f"{quantity(len(row), 'cell')}, the header has {len(rows[0])}"
                self.refuse(number, min(len(row), len(rows[0])) + 1, what)
            rows.append(row)
        return rows

    def row(self, position: int, number: int) -> tuple[list[str], int]:
        """The cells of one row and where the next row begins."""
        cells: list[str] = []
        while True:
            place = (number, len(cells) + 1)
            if place[1] > COLUMN_LIMIT:
                self.refuse(*place, f"more than {COLUMN_LIMIT} cells in a row")
            quoted = self.text.startswith('"', position)
            begin = position + quoted
            end = self.closing(begin, place) if quoted else self.bare_end(begin)
            cell = self.text[begin:end]
            cells.append(cell.replace('""', '"') if quoted else cell)
            stop = self.stop.match(self.text, end + quoted)
            if stop is None:
                self.refuse(*place, self.explain(end + quoted, quoted))
            if "\0" in cell:
                self.refuse(*place, "a NUL character")
            position = stop.end()
            if stop[0] != self.delimiter:
                return cells, position

    def bare_end(self, begin: int) -> int:
        """Where an unquoted cell stops."""
        match = self.bare.match(self.text, begin)
        assert match is not None
        return match.end()

    def closing(self, begin: int, place: tuple[int, int]) -> int:
        """Where the quote stands that closes a cell; two in a row are one character of it."""
        limit = begin + FIELD_LIMIT + 1
        at = self.text.find('"', begin, limit)
        while at >= 0 and self.text.startswith('"', at + 1):
            at = self.text.find('"', at + 2, limit)
        if at < 0 and limit < len(self.text):
            self.refuse(*place, _TOO_LONG)
        if at < 0:
            self.refuse(*place, "a quote is opened and never closed")
        return at

    def explain(self, at: int, quoted: bool) -> str:
        """Why a cell cannot go on with the character at `at`."""
        found = self.text[at]
        if quoted:
            return f"text after the closing quote: {found!r}"
        if found == "\0":
            return "a NUL character"
        return "a quote inside an unquoted cell" if found == '"' else _TOO_LONG

    def refuse(self, row: int, column: int, what: str) -> NoReturn:
        """An error at one cell."""
        raise DataError(f"{self.source}: row {row}, column {column}: {what}", code="E304")
