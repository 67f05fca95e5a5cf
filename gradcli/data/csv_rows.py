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
    text, parser = text_of(data, source), ExactRows(source, delimiter)
    rows, position = parser.parse(text, final=True)
    while position < len(text):  # behind the rows is the mistake
        more, position = parser.parse(text[position:], final=True)
        rows += more
    return rows


class _UnfinishedError(Exception):
    """The text ends where a row could go on."""


class ExactRows:
    """Rows of a text that may come in pieces, cell by cell; slow, and sure of every mistake.

    Attributes:
        count: rows so far, the header among them.
        width: cells of the header.
    """

    def __init__(self, source: str, delimiter: str) -> None:
        self.source = source
        self.delimiter = delimiter
        self.count = self.width = self._blank = 0
        self._text, self._final = "", True
        d = re.escape(delimiter)
        # Possessive and bounded: the time grows with the text and no faster.
        self._bare = re.compile(rf'[^"{d}\r\n\0]{{0,{FIELD_LIMIT}}}+')
        self._stop = re.compile(rf"{d}|\r\n|\n|\r|\Z")

    def parse(
        self, text: str, *, final: bool, until: int | None = None, most: int | None = None
    ) -> tuple[list[list[str]], int]:
        """The rows that begin before `until`, at most so many, and where the rest begins.

        The rest is a row that the text does not finish, unless it is the final piece; or a row with
        a mistake, which raises once it is the first row of a text.
        """
        self._text, self._final = text, final
        rows: list[list[str]] = []
        position, end = 0, len(text) if until is None else until
        while position < end and len(rows) != most:
            number = self.count + self._blank + 1
            try:
                row, behind = self._row(position, number)
                if row == [""]:
                    self._blank += 1
                else:
                    self._check(row, number)
                    rows.append(row)
            except _UnfinishedError:
                break
            except DataError:
                if rows:
                    break
                raise
            position = behind
        return rows, position

    def skip(self, rows: int) -> None:
        """Count rows that another reader has read."""
        self.count += rows

    @property
    def blank(self) -> bool:
        """Whether the last line was empty: only such lines may follow."""
        return self._blank > 0

    def _check(self, row: list[str], number: int) -> None:
        if self.count and self._blank:
            self.refuse(number - self._blank, 1, "an empty line inside the table")
        if not self.count:
            self.width = len(row)
        if len(row) != self.width:
            what = f"{quantity(len(row), 'cell')}, the header has {self.width}"
            self.refuse(number, min(len(row), self.width) + 1, what)
        self.count += 1

    def _row(self, position: int, number: int) -> tuple[list[str], int]:
        """The cells of one row and where the next row begins."""
        cells: list[str] = []
        while True:
            location = (number, len(cells) + 1)
            if location[1] > COLUMN_LIMIT:
                self.refuse(*location, f"more than {COLUMN_LIMIT} cells in a row")
            quoted = self._text.startswith('"', position)
            begin = position + quoted
            end = self._closing(begin, location) if quoted else self._bare_end(begin)
            self._go_on(end + quoted)
            cell = self._text[begin:end]
            cells.append(cell.replace('""', '"') if quoted else cell)
            stop = self._stop.match(self._text, end + quoted)
            if stop is None:
                self.refuse(*location, self._explain(end + quoted, quoted))
            if "\0" in cell:
                self.refuse(*location, "a NUL character")
            position = stop.end()
            if stop[0] == "\r":
                self._go_on(position)  # the next piece may begin with the other half of a CRLF
            if stop[0] != self.delimiter:
                return cells, position

    def _go_on(self, position: int) -> None:
        """What stands at a position decides; it may be in the next piece."""
        if position >= len(self._text) and not self._final:
            raise _UnfinishedError

    def _bare_end(self, begin: int) -> int:
        """Where an unquoted cell stops."""
        match = self._bare.match(self._text, begin)
        assert match is not None
        return match.end()

    def _closing(self, begin: int, location: tuple[int, int]) -> int:
        """Where the quote stands that closes a cell; two in a row are one character of it."""
        limit = begin + FIELD_LIMIT + 1
        at = self._text.find('"', begin, limit)
        while at >= 0 and self._text.startswith('"', at + 1):
            at = self._text.find('"', at + 2, limit)
        if at < 0 and limit < len(self._text):
            self.refuse(*location, _TOO_LONG)
        if at < 0:
            self._go_on(len(self._text))
            self.refuse(*location, "a quote is opened and never closed")
        return at

    def _explain(self, at: int, quoted: bool) -> str:
        """Why a cell cannot go on with the character at `at`."""
        character = self._text[at]
        if quoted:
            return f"text after the closing quote: {character!r}"
        if character == "\0":
            return "a NUL character"
        return "a quote inside an unquoted cell" if character == '"' else _TOO_LONG

    def refuse(self, row: int, column: int, what: str) -> NoReturn:
        """An error at one cell."""
        raise DataError(f"{self.source}: row {row}, column {column}: {what}", code="E304")
