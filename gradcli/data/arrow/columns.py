"""Arrow's arrays as the numbers and words that every reader of tables gives."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from gradcli.data.tabular.cells import LARGEST, all_fit, holds_others, numbers_of
from gradcli.data.tabular.reader import Numbers, Role, Words, most_words


class OpenColumns:
    """Which columns are numbers and which are words, as far as the table was read.

    Attributes:
        numeric: the columns of numbers; one that may be either leaves with the first other cell.
        worded: the columns of words; one that may be either leaves with too many of them.
    """

    def __init__(self, roles: Mapping[str, Role]) -> None:
        self._roles = roles
        self.numeric = [name for name, role in roles.items() if role != "word"]
        self.worded = {name: _Coder() for name, role in roles.items() if role != "number"}

    def numbers(self, numbers: dict[str, Numbers]) -> dict[str, Numbers]:
        """Of the next numbers, those of columns that stay numeric."""
        for name in [name for name in numbers if self._roles[name] == "any"]:
            if holds_others(numbers[name]):
                self.numeric.remove(name)
                del numbers[name]
        return numbers

    def words(self, cells: Mapping[str, Any]) -> dict[str, Words]:
        """The words in the next cells."""
        words = {}
        for name, coder in list(self.worded.items()):
            words[name] = coder.words(cells[name])
            if self._roles[name] == "any" and len(coder.table) > most_words(self._roles):
                del words[name], self.worded[name]
        return words


class _Coder:
    """Words of one column as places in a table of the different ones, in order of appearance."""

    def __init__(self) -> None:
        self.table: list[str] = []
        self._indices: dict[str, int] = {}

    def words(self, cells: Any) -> Words:
        """The words of some more cells; a gap is the word ""."""
        if not pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_encode()
        if cells.null_count or len(cells.dictionary.unique()) < len(cells.dictionary):
            cells = pa.array(texts_of(cells), pa.string()).dictionary_encode()
        codes = cells.indices.unique().to_pylist()  # in order of appearance
        words = texts_of(cells.dictionary)
        indices, there = self._indices, [0] * len(words)
        for code in codes:
            there[code] = indices.setdefault(words[code], len(indices))
        if len(indices) > len(self.table):
            self.table = list(indices)
        return Words(array_of("i", pa.array(there, pa.int32()).take(cells.indices)), self.table)


def numbers_in(cells: Any) -> Numbers:
    """The number of each cell, whatever the type of the column; other cells as they are written."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pa.types.is_null(cells.type) or _counts(cells.type):
        cells = cells.cast(pa.float64(), safe=False)
    values = cells
    if pa.types.is_decimal(cells.type):  # through its digits, which are rounded once
        values = cells.cast(pa.string()).cast(pa.float64())
    numbers = floats_in(values) if pa.types.is_float64(values.type) else None
    return numbers_of(texts_of(cells)) if numbers is None else numbers


def floats_in(cells: Any) -> Numbers | None:
    """The numbers of a column of float64, in chunks or not; None where one is beyond float32."""
    if not cells.null_count:
        values = array_of("d", cells)
        return Numbers(values, {}) if all_fit(values) else None
    import pyarrow.compute as pc  # it takes as long as reading 50,000 rows

    if pc.all(pc.less(pc.abs(cells), LARGEST)).as_py() is False:
        return None
    gaps = array_of("q", pc.indices_nonzero(cells.is_null()).cast(pa.int64()))
    return Numbers(array_of("d", cells.fill_null(math.nan)), dict.fromkeys(gaps, ""))


def texts_of(cells: Any) -> list[str]:
    """Cells as a CSV file of them has them; "" for a gap."""
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pa.types.is_float64(cells.type):
        return ["" if cell is None else repr(cell) for cell in cells.to_pylist()]
    if not pa.types.is_string(cells.type):
        cells = cells.cast(pa.string())
    texts: list[str] = cells.fill_null("").to_pylist()
    return texts


def has_texts(kind: Any) -> bool:
    """Whether cells of this type are numbers, words, truth or times."""
    of = pa.types
    if of.is_dictionary(kind):
        return has_texts(kind.value_type)
    words = of.is_string(kind) or of.is_large_string(kind) or of.is_string_view(kind)
    times = of.is_timestamp(kind) or of.is_date(kind) or of.is_time(kind)
    return bool(words or times or of.is_decimal(kind) or of.is_null(kind) or _counts(kind))


def _counts(kind: Any) -> bool:
    of = pa.types
    return bool(of.is_integer(kind) or of.is_floating(kind) or of.is_boolean(kind))


def array_of(code: str, cells: Any) -> array[Any]:
    """The values of an array, or of one in chunks, without gaps."""
    numbers = array(code)
    wide = numbers.itemsize
    for chunk in cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]:
        begin = chunk.offset * wide
        if len(chunk):
            numbers.frombytes(memoryview(chunk.buffers()[1])[begin : begin + len(chunk) * wide])
    return numbers
