"""Tables in CSV without any library: whole blocks at the speed of `str` and of Python's `csv`.

Both take more than RFC 4180 allows. A block is theirs only where that was ruled out; any other one
goes through ExactRows, which is slow and knows the sentence for each mistake.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat

from gradcli.data.csv_rows import FIELD_LIMIT, ExactRows
from gradcli.data.tabular.cells import Columns
from gradcli.data.tabular.reader import Role, TableBlock, WithHeaderRow
from gradcli.errors import DataError

_PATIENCE = 1 << 22  # characters without an end of a row, after which they are parsed exactly


class CsvReader(WithHeaderRow):
    """The rows of a text that comes in pieces; of any length in bounded memory."""

    def __init__(self, texts: Iterator[str], source: str, delimiter: str = ",") -> None:
        self.source = source
        self._delimiter = delimiter
        self._exact = ExactRows(source, delimiter)
        self._texts = texts
        self._text, self._final = "", False
        self._well_formed = _grammar(delimiter)
        self.header: Sequence[str] = self._header()

    def _header(self) -> list[str]:
        rows = self._exact_rows(most=1)
        while not rows and not self._final:
            self._more(len(self._text) + 1)
            rows = self._exact_rows(most=1)
        if not rows:
            raise DataError(
                f"{self.source}: the table is empty: no header and no rows", code="E304"
            )
        return rows[0]

    def blocks(self, roles: Mapping[str, Role]) -> Iterator[TableBlock]:
        """The columns that are named, as the protocol says."""
        first = {name: at for at, name in reversed(list(enumerate(self.header)))}
        indices = {name: first[name] for name in roles}
        columns = Columns(roles)
        for count, cells in self._cells(list(indices.values())):
            yield TableBlock(count, *columns.of(dict(zip(indices, cells, strict=True))))

    def _cells(self, indices: list[int]) -> Iterator[tuple[int, list[Sequence[str]]]]:
        """For each block its rows, and the cells of columns."""
        while self._text or not self._final:
            before, end = len(self._text), self._end_of_rows()
            quick = self._quick(self._text[:end], indices) if end else None
            if quick is not None:
                count, cells = quick
                self._exact.skip(count)
                self._text = self._text[end:]
                yield count, cells
            elif end or self._final or before > _PATIENCE:
                rows = self._exact_rows(until=end or before)
                if rows:
                    yield len(rows), [[row[at] for row in rows] for at in indices]
            self._more(before if len(self._text) == before > _PATIENCE else 1)

    def _more(self, least: int = 1) -> None:
        """More text, so many characters where there are any: a long row is not begun too often."""
        pieces, total = [self._text], 0
        while total < least and not self._final:
            piece = next(self._texts, None)
            if piece is None:
                self._final = True
                break
            pieces.append(piece)
            total += len(piece)
        self._text = "".join(pieces)

    def _exact_rows(self, until: int | None = None, most: int | None = None) -> list[list[str]]:
        rows, position = self._exact.parse(self._text, final=self._final, until=until, most=most)
        self._text = self._text[position:]
        return rows

    def _end_of_rows(self) -> int:
        """Where the last whole row of the text ends, if its quotes are right; 0 if none does."""
        text = self._text
        if self._final:
            return len(text)
        end = _last_break(text, len(text))
        if '"' not in text:
            return end
        inside = text.count('"', 0, end) % 2
        while end and inside:
            before = _last_break(text, end - 1)
            inside ^= text.count('"', before, end) % 2
            end = before
        return end

    def _quick(self, text: str, indices: list[int]) -> tuple[int, list[Sequence[str]]] | None:
        """The number of rows and the columns of whole rows; None where they need a closer look."""
        if not text or "\0" in text or self._exact.blank:
            return None
        if '"' in text:
            return self._by_csv(text, indices)
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        width, delimiter = self._exact.width, self._delimiter
        if len(text) > FIELD_LIMIT and max(map(len, lines)) > FIELD_LIMIT:
            return None
        if width == 1 and not all(lines):
            return None
        if {*map(str.count, lines, repeat(delimiter))} != {width - 1}:
            return None
        cells = delimiter.join(lines).split(delimiter)
        return len(lines), [cells[at::width] for at in indices]

    def _by_csv(self, text: str, indices: list[int]) -> tuple[int, list[Sequence[str]]] | None:
        text = text if text[-1] in "\r\n" else text + "\n"
        if not self._well_formed.fullmatch(text):
            return None
        lines = io.StringIO(text, newline="")
        try:
            rows = list(csv.reader(lines, delimiter=self._delimiter, strict=True))
        except csv.Error:  # of a cell that is longer than the module takes
            return None
        width = self._exact.width
        if {*map(len, rows)} != {width} or (width == 1 and [""] in rows):
            return None
        columns = list(zip(*rows, strict=True))
        return len(rows), [columns[at] for at in indices]


def _last_break(text: str, before: int) -> int:
    """Behind the last line break before a position; a CR at the end may be half of a CRLF."""
    return max(text.rfind("\n", 0, before), text.rfind("\r", 0, max(before - 1, 0))) + 1


def _grammar(delimiter: str) -> re.Pattern[str]:
    """Rows of cells as RFC 4180 has them, but for their number: quotes around a whole cell."""
    d = re.escape(delimiter)
    return re.compile(rf'(?:(?:"(?:[^"]++|"")*+"|[^"{d}\r\n]*+)(?:{d}|\r\n|\n|\r))*+')
