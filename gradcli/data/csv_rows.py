"""CSV text into rows of cells: strict RFC 4180, every mistake with its row and column."""

from __future__ import annotations

import re
from typing import NoReturn

from gradcli.errors import DataError

FIELD_LIMIT = 1 << 20  # characters in one cell
COLUMN_LIMIT = 16384


def parse_rows(data: bytes, source: str, delimiter: str = ",") -> list[list[str]]:
    """All rows of a table, the header first; each has as many cells as the header.

    A byte order mark, CRLF, line breaks inside quotes and empty lines at the end are accepted.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{source}:{line}: not UTF-8 text: byte {data[error.start]:#04x} "
            f"at byte offset {error.start}",
            code="E304",
        ) from None
    return _Parser(text, source, delimiter).rows()


class _Parser:
    """One pass over the text, cell by cell; a failed match is explained afterwards."""

    def __init__(self, text: str, source: str, delimiter: str) -> None:
        self.text = text
        self.source = source
        d = re.escape(delimiter)
        # Possessive repeats: no backtracking, so the time grows with the text and no faster.
        self.cell = re.compile(rf'(?:"((?:[^"\0]++|"")*+)"|([^"{d}\r\n\0]*+))({d}|\r\n|\n|\r|\Z)')
        self.delimiter = delimiter

    def rows(self) -> list[list[str]]:
        rows: list[list[str]] = []
        blank = 0
        position, end = 0, len(self.text)
        while position < end:
            row, position = self.row(position, len(rows) + blank + 1)
            if row == [""]:
                blank += 1
                continue
            number = len(rows) + blank + 1
            if rows and blank:
                self.refuse(number - blank, 1, "an empty line inside the table")
            if rows and len(row) != len(rows[0]):
                what = f"{len(row)} cells, the header has {len(rows[0])}"
                self.refuse(number, min(len(row), len(rows[0])) + 1, what)
            rows.append(row)
        return rows

    def row(self, position: int, number: int) -> tuple[list[str], int]:
        """The cells of one row and where the next row begins."""
        cells: list[str] = []
        while True:
            match = self.cell.match(self.text, position)
            if match is None:
                self.explain(position, number, len(cells) + 1)
            quoted, bare, stop = match.groups()
            cell = bare if quoted is None else quoted.replace('""', '"')
            cells.append(cell)
            if len(cell) > FIELD_LIMIT:
                what = f"a cell of {len(cell)} characters; at most {FIELD_LIMIT} are read"
                self.refuse(number, len(cells), what)
            if len(cells) > COLUMN_LIMIT:
                self.refuse(number, len(cells), f"more than {COLUMN_LIMIT} cells in a row")
            position = match.end()
            if stop != self.delimiter:
                return cells, position

    def explain(self, position: int, number: int, column: int) -> NoReturn:
        """Say why no cell begins at `position`."""
        if self.text[position] != '"':
            stop = re.compile(r'["\0]').search(self.text, position)
            assert stop is not None
            what = "a NUL character" if stop[0] == "\0" else "a quote inside an unquoted cell"
            self.refuse(number, column, what)
        inside = re.compile(r'"(?:[^"\0]++|"")*+').match(self.text, position)
        assert inside is not None
        rest = self.text[inside.end() : inside.end() + 2]
        if not rest:
            self.refuse(number, column, "a quote is opened and never closed")
        if rest[0] == "\0":
            self.refuse(number, column, "a NUL character")
        self.refuse(number, column, f"text after the closing quote: {rest[1:]!r}")

    def refuse(self, row: int, column: int, what: str) -> NoReturn:
        raise DataError(f"{self.source}: row {row}, column {column}: {what}", code="E304")
