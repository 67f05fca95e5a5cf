"""The bytes of a CSV file in blocks of whole rows that every CSV reader splits in the same way.

What readers take differently (a quote inside a cell, a NUL character, bytes that are no UTF-8) is
odd: the reader of the base install takes over and reports it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradcli.data.csv_rows import COLUMN_LIMIT, FIELD_LIMIT, parse_rows
from gradcli.data.tabular.pieces import BOM
from gradcli.errors import DataError

BLOCK = 1 << 21  # bytes; enough for some threads
_WINDOW = FIELD_LIMIT // 2  # a cell that is too long covers one of these
_LONGEST = 8 * BLOCK  # of rows that do not end
_EMPTY_LINES = (b"\n\n", b"\n\r", b"\r\r")


class OddError(Exception):
    """Something that readers could take differently: the base reader decides."""


class RowBlocks:
    """The header of a file that comes in pieces, and what is below it in blocks of whole rows."""

    def __init__(self, pieces: Iterator[bytes], delimiter: str) -> None:
        d = re.escape(delimiter.encode())
        quoted = rb'"(?:[^"]|""){0,%d}+"(?=[%s\r\n]|\Z)' % (FIELD_LIMIT, d)
        # No `+` behind the groups that hold these: before Python 3.11.5 they match too much then.
        self._cell = re.compile(rb"(?<![^%s\r\n])%s" % (d, quoted))
        self._row = re.compile(rb'(?:[^"\r\n]++|%s)+(?:\r\n|\n|\r|\Z)' % quoted)
        self._pieces = pieces
        self._rest, self._end = b"", False
        self.header = self._header(delimiter)

    def _header(self, delimiter: str) -> list[str]:
        self._more()
        self._rest = self._rest.removeprefix(BOM)
        row = self._row.match(self._rest)
        if row is None or row[0].startswith(BOM):  # a second mark is text
            raise OddError
        try:
            header = next(iter(parse_rows(row[0], "", delimiter)), [])
        except DataError:
            raise OddError from None
        # A row of one cell may be an empty line, which readers pass by in different ways.
        if not 1 < len(header) <= COLUMN_LIMIT:
            raise OddError
        self._rest = self._rest[row.end() :]
        return header

    def __iter__(self) -> Iterator[bytes]:
        while self._rest or not self._end:
            end = _end_of_rows(self._rest)
            if self._end:
                block, self._rest = _without_empty_lines(self._rest), b""
            else:
                block, self._rest = self._rest[:end], self._rest[end:]
            if block:
                self._check(block)
                yield block
            if len(self._rest) > _LONGEST:
                raise OddError
            self._more()

    def _more(self) -> None:
        """One more block of bytes, where there are any."""
        pieces, total = [self._rest], 0
        while total < BLOCK and not self._end:
            piece = next(self._pieces, None)
            self._end = piece is None
            pieces.append(piece or b"")
            total += len(pieces[-1])
        self._rest = b"".join(pieces)

    def _check(self, block: bytes) -> None:
        # Arrow takes a mark at the beginning of a block for that of a file.
        if block[0] in b"\r\n" or block.startswith(BOM):
            raise OddError
        if b"\0" in block or not self._plain(block):
            raise OddError
        for start in range(0, len(block) - _WINDOW, _WINDOW):
            if block.find(b"\n", start, start + _WINDOW) < 0:
                raise OddError
        if not block.isascii():
            try:
                block.decode()
            except UnicodeDecodeError:
                raise OddError from None

    def _plain(self, block: bytes) -> bool:
        """Whether quotes are around whole cells only; and where there is a CR, no line is empty."""
        if b'"' in block:
            block = self._cell.sub(b"a cell", block)
        elif b"\r" not in block:
            return True
        return b'"' not in block and not any(pair in block for pair in _EMPTY_LINES)


def refuse_empty_lines(block: bytes) -> None:
    """Raise at an empty line; the search takes time, so call it where there may be one."""
    if b"\n\n" in block:
        raise OddError


def _without_empty_lines(block: bytes) -> bytes:
    """The last rows of a file, of which the empty ones are passed by."""
    rows = block.rstrip(b"\r\n")
    return rows + b"\n" if rows else b""


def _end_of_rows(block: bytes) -> int:
    """Where the last row ends that is whole: at a line break with no quote open before it."""
    end = block.rfind(b"\n") + 1
    quotes = block.count(b'"', 0, end) if b'"' in block else 0
    while quotes % 2:
        before = block.rfind(b"\n", 0, end - 1) + 1
        quotes -= block.count(b'"', before, end)
        end = before
    return end
