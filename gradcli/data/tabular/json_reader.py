"""Tables as JSON lines: an object a row, whose values are cells as those of a CSV file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NoReturn

from gradcli.data.files import path_text
from gradcli.data.tabular.cells import Columns
from gradcli.data.tabular.pieces import lines_in
from gradcli.data.tabular.reader import Role, TableBlock, WithoutHeaderRow
from gradcli.errors import DataError
from gradcli.wording import quantity

LINE_LIMIT = 1 << 24  # characters of one row
KEYS_FROM = 1000  # rows, whose keys together are the header
_ROWS = 4096  # of a block
_SPACE = " \t\r\n"
ONE_LINE_EACH = "write one object per line, as pandas' to_json(orient='records', lines=True) does"
Row = dict[str, Any]


class JsonLinesReader(WithoutHeaderRow):
    """The rows of a text that comes in pieces; the keys of the first ones are the header."""

    def __init__(self, texts: Iterator[str], source: str) -> None:
        self.source = source
        self._rows = self._read(texts)
        self._keys: frozenset[str] | None = None
        self._mistake: DataError | None = None
        self._first = self._next(KEYS_FROM)
        if not self._first:
            empty = "the table is empty: no rows"
            raise self._mistake or DataError(f"{source}: {empty}", code="E304")
        self.header: Sequence[str] = list(dict.fromkeys(chain.from_iterable(self._first)))
        self._keys = frozenset(self.header)

    def blocks(self, roles: Mapping[str, Role]) -> Iterator[TableBlock]:
        """The columns that are named, as the protocol says."""
        columns = Columns(roles)
        rows = self._first
        while rows:
            cells = {name: [_cell(row.get(name)) for row in rows] for name in roles}
            yield TableBlock(len(rows), *columns.of(cells))
            rows = [] if self._mistake else self._next(_ROWS)
        if self._mistake:
            raise self._mistake

    def _next(self, most: int) -> list[Row]:
        """Some more rows; fewer before one with a mistake, which is raised after them."""
        rows: list[Row] = []
        try:
            rows.extend(islice(self._rows, most))
        except DataError as error:
            self._mistake = error
        return rows

    def _read(self, texts: Iterator[str]) -> Iterator[Row]:
        blank = 0
        for number, line in enumerate(lines_in(texts, LINE_LIMIT), 1):
            if len(line) > LINE_LIMIT:
                self._refuse(number, f"more than {quantity(LINE_LIMIT, 'character')}")
            if not line.strip(_SPACE):
                blank = blank or number
            elif blank:
                self._refuse(blank, "an empty line inside the table")
            else:
                yield self._row(line, number)

    def _row(self, line: str, number: int) -> Row:
        try:
            row = _DECODER.decode(line)
            if "\\u" in line:  # half of a pair is no text, and cannot be written again
                json.dumps(row, ensure_ascii=False).encode()
        except RecursionError:
            self._refuse(number, "lists or objects inside each other, too deep")
        except ValueError as error:
            self._refuse(number, f"not a JSON object: {_reason(error)}; {ONE_LINE_EACH}")
        if not isinstance(row, dict):
            self._refuse(number, f"expected a JSON object, found another value; {ONE_LINE_EACH}")
        if self._keys is not None and not self._keys.issuperset(row):
            new = next(key for key in row if key not in self._keys)
            what = f"the key {new!r} is in none of the first {KEYS_FROM} rows"
            self._refuse(number, f"{what}; write it there too, with null for a gap")
        return row

    def _refuse(self, number: int, what: str) -> NoReturn:
        raise DataError(f"{self.source}: row {number}: {what}", code="E304")


def _reason(error: ValueError) -> str:
    if isinstance(error, UnicodeEncodeError):
        return f"a half of a surrogate pair, \\u{ord(error.object[error.start]):x}"
    return path_text(error.msg if isinstance(error, json.JSONDecodeError) else str(error))


def _unique(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return row


# Numbers stay as they are written: the rule for cells says what they are.
_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=str, parse_int=str, parse_constant=str
)


def _cell(value: Any) -> str:
    """A value as the cell of a CSV file; null is an empty one."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
