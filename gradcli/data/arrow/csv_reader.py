"""Tables in CSV by pyarrow, in parallel: the numbers and the sentences of the base reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import csv

from gradcli.data.arrow.columns import OpenColumns, floats_in, texts_of
from gradcli.data.arrow.row_blocks import OddError, RowBlocks, refuse_empty_lines
from gradcli.data.tabular.cells import numbers_of
from gradcli.data.tabular.csv_reader import CsvReader
from gradcli.data.tabular.pieces import texts
from gradcli.data.tabular.reader import Numbers, Role, TableBlock, WithHeaderRow, Words

_GAPS = ("", "NA")
_CHUNK = 1 << 19  # bytes that one thread parses
_WORD = pa.dictionary(pa.int32(), pa.string())
_POOL = pa.system_memory_pool()  # it gives back what others keep for later
_FAILED = re.compile(r"CSV column #(\d+)")


class ArrowCsvReader(WithHeaderRow):
    """The rows of a file that comes in pieces; `reopen` gives these anew, for the base reader."""

    def __init__(
        self,
        pieces: Iterator[bytes],
        reopen: Callable[[], Iterator[bytes]],
        source: str,
        delimiter: str = ",",
    ) -> None:
        self.source = source
        self._reopen, self._delimiter = reopen, delimiter
        self._rows: RowBlocks | None = None
        self._base: CsvReader | None = None
        try:
            self._rows = RowBlocks(pieces, delimiter)
            self.header: Sequence[str] = self._rows.header
        except OddError:
            self._base = self._slow_reader()
            self.header = self._base.header

    def _slow_reader(self) -> CsvReader:
        return CsvReader(texts(self._reopen(), self.source), self.source, self._delimiter)

    def blocks(self, roles: Mapping[str, Role]) -> Iterator[TableBlock]:
        """The columns that are named, as the protocol says."""
        count = 0
        if self._rows is not None:
            columns = _Columns(self.header, roles, self._delimiter)
            try:
                for rows in self._rows:
                    block = columns.of(rows)
                    yield block
                    count += block.count
            except OddError:
                self._base = self._slow_reader()
        if self._base is not None:
            yield from _behind(count, self._base.blocks(roles))


def _behind(count: int, blocks: Iterator[TableBlock]) -> Iterator[TableBlock]:
    """The blocks of a table without its first rows."""
    for block in blocks:
        if count < block.count:
            yield _without(count, block) if count else block
        count = max(0, count - block.count)


def _without(count: int, block: TableBlock) -> TableBlock:
    numbers = {}
    for name, column in block.numbers.items():
        odd = {index - count: cell for index, cell in column.odd.items() if index >= count}
        numbers[name] = Numbers(column.values[count:], odd)
    words = {
        name: Words(column.codes[count:], column.table) for name, column in block.words.items()
    }
    return TableBlock(block.count - count, numbers, words)


class _Columns:
    """The columns of one block after the other."""

    def __init__(self, header: Sequence[str], roles: Mapping[str, Role], delimiter: str) -> None:
        self._delimiter = delimiter
        self._names = [str(index) for index in range(len(header))]
        self._column_ids = {name: str(header.index(name)) for name in roles}
        self._open = OpenColumns(roles)
        # Columns of numbers in which a cell was none for Arrow: what it is their text tells.
        self._as_text: set[str] = set()

    def of(self, rows: bytes) -> TableBlock:
        """The numbers and words of some rows."""
        once = [name for name in self._open.worded if name not in self._open.numeric]
        columns, floats = self._parsed_as_numbers(rows, dict.fromkeys(once, _WORD))
        if all(column.odd for column in floats.values()):  # an empty line is a gap in each
            refuse_empty_lines(rows)
        count = columns.num_rows
        numbers = self._open.numbers(self._numbers(rows, columns, floats))
        cells = {name: self._column(columns, name) for name in once}
        if len(once) < len(self._open.worded):
            reparsed = self._parsed(rows, dict.fromkeys(self._open.worded, _WORD))
            cells = {name: self._column(reparsed, name) for name in self._open.worded}
        return TableBlock(count, numbers, self._open.words(cells))

    def _parsed_as_numbers(
        self, rows: bytes, words: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Numbers]]:
        """Rows in which each column of numbers has nothing else, or is text; the former."""
        while True:
            types = dict(words)
            for name in self._open.numeric:
                types[name] = pa.string() if name in self._as_text else pa.float64()
            try:
                columns = self._parsed(rows, types)
            except _NoNumberError as error:
                failed = {n for n in self._open.numeric if self._column_ids[n] == error.column}
                if failed <= self._as_text:
                    raise OddError from None
                self._as_text |= failed
                continue
            floats, large = {}, set()
            for name in [name for name, kind in types.items() if kind == pa.float64()]:
                numbers = floats_in(columns.column(self._column_ids[name]))
                if numbers is None:
                    large.add(name)
                else:
                    floats[name] = numbers
            if not large:
                return columns, floats
            self._as_text |= large

    def _numbers(
        self, rows: bytes, columns: Any, floats: Mapping[str, Numbers]
    ) -> dict[str, Numbers]:
        numbers = {
            name: floats[name]
            if name in floats
            else numbers_of(texts_of(self._column(columns, name)))
            for name in self._open.numeric
        }
        gaps = [name for name, column in floats.items() if column.odd]
        if gaps:  # Arrow says where a gap is, but not its text
            reparsed = self._parsed(rows, dict.fromkeys(gaps, pa.string()))
            for name in gaps:
                indices = list(floats[name].odd)
                cells = self._column(reparsed, name).take(pa.array(indices, pa.int64()))
                odd = dict(zip(indices, texts_of(cells), strict=True))
                numbers[name] = Numbers(floats[name].values, odd)
        return numbers

    def _column(self, columns: Any, name: str) -> Any:
        """A column in one piece."""
        column = columns.column(self._column_ids[name])
        if pa.types.is_dictionary(column.type):
            column = column.unify_dictionaries()
        whole = column.combine_chunks(memory_pool=_POOL)
        return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole

    def _parsed(self, rows: bytes, types: Mapping[str, Any]) -> Any:
        """Columns of these types; an empty cell is a gap among numbers, and a word among words."""
        kinds = {self._column_ids[name]: kind for name, kind in types.items()}
        read = csv.ReadOptions(column_names=self._names, block_size=_CHUNK)
        parse = csv.ParseOptions(
            delimiter=self._delimiter, ignore_empty_lines=False, newlines_in_values=b'"' in rows
        )
        convert = csv.ConvertOptions(
            column_types=kinds,
            include_columns=list(kinds) or self._names[:1],
            null_values=list(_GAPS),
            strings_can_be_null=False,
            check_utf8=False,
        )
        try:
            return csv.read_csv(pa.BufferReader(rows), read, parse, convert, memory_pool=_POOL)
        except pa.ArrowInvalid as error:
            failed = _FAILED.search(str(error))
            if failed is None:
                raise OddError from None
            raise _NoNumberError(failed[1]) from None


class _NoNumberError(Exception):
    """A cell of the column at `column` is no number for Arrow."""

    def __init__(self, column: str) -> None:
        self.column = column
