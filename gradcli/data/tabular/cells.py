"""Cells as numbers and words: the exact rule of `number_of`, at the speed of C where it agrees."""

from __future__ import annotations

import math
import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from gradcli import engine
from gradcli.data.tabular.reader import Numbers, Role, TableBlock, WithHeaderRow, Words, most_words
from gradcli.engine import Tensor
from gradcli.engine.array import empty, run

MARKS = frozenset({"", "NA"})
LARGEST = 3.4e38  # float32, which is computed in, holds no more
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_FEW = 256  # values, for which the engine is not asked
_COMMON_GAPS = frozenset({*MARKS, "nan", "NaN"})


_TRUTH = {"true": 1.0, "false": 0.0}


def with_truth(column: Numbers) -> Numbers:
    """The same column, in which true and false, in any case, are 1 and 0."""
    words = {index: cell.strip().lower() for index, cell in column.odd.items()}
    truth = {index: _TRUTH[word] for index, word in words.items() if word in _TRUTH}
    if not truth:
        return column
    values = array("d", column.values)
    for index, value in truth.items():
        values[index] = value
    odd = {index: cell for index, cell in column.odd.items() if index not in truth}
    return Numbers(values, odd)


def indices_among(words: Iterable[str], table: Sequence[str]) -> dict[str, int]:
    """The places in a table of the words that it has; true and false it has in any case."""
    indices = {word: at for at, word in enumerate(table)}
    any_case = {word.lower(): at for word, at in indices.items()}
    if len(table) != len(_TRUTH) or any_case.keys() != _TRUTH.keys():
        any_case = {}
    there = {word: indices.get(word, any_case.get(word.lower())) for word in words}
    return {word: at for word, at in there.items() if at is not None}


def is_missing(cell: str, allowed: bool) -> bool:
    """Whether a cell is empty or NA; `nan` counts only where missing values are allowed."""
    return cell.strip() in MARKS or (allowed and cell.strip().lower() == "nan")


def number_of(cell: str) -> float:
    """The number of a cell; NaN where it is no number, or outside the range of float32."""
    text = cell.strip()
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    return value if abs(value) < LARGEST else math.nan


def numbers_of(cells: Sequence[str]) -> Numbers:
    """The number of each cell: common forms are parsed in C, the rest in Python."""
    if len(cells) < _FEW:
        return _one_by_one(cells)
    text = "\n".join(cells)
    if not text.isascii() or text.count("\n") != len(cells) - 1:
        return _one_by_one(cells)
    numbers, odd = empty((len(cells),), engine.float64), empty((len(cells),), engine.uint8)
    letters = engine.frombuffer(text.encode(), dtype=engine.uint8)
    run("read_numerals", letters.array, numbers, odd)
    values = array("d")
    values.frombytes(Tensor(numbers).memoryview())
    odd_cells, marks = {}, bytes(Tensor(odd).memoryview())
    index = marks.find(1)
    while index >= 0:
        cell = cells[index]
        value = values[index] = math.nan if cell in _COMMON_GAPS else number_of(cell)
        if value != value:
            odd_cells[index] = cell
        index = marks.find(1, index + 1)
    return Numbers(values, odd_cells)


def all_fit(values: array[float]) -> bool:
    """Whether every value is a number in float32, as `number_of` has them."""
    if len(values) < _FEW:
        return all(abs(value) < LARGEST for value in values)
    numbers, squares = engine.frombuffer(values, dtype=engine.float64), empty((1,), engine.float64)
    run("sum_squares", numbers.array, squares)  # at once; it is too large now and then
    return squares.tolist()[0] < LARGEST**2 or bool(numbers.abs().max().item() < LARGEST)


def _one_by_one(cells: Sequence[str]) -> Numbers:
    values = array("d", map(number_of, cells))
    odd = {index: cells[index] for index, value in enumerate(values) if value != value}
    return Numbers(values, odd)


class Coder:
    """Words of one column as places in a table of the different ones, in order of appearance."""

    def __init__(self) -> None:
        self.table: list[str] = []
        self._codes: defaultdict[str, int] = defaultdict()
        self._codes.default_factory = self._codes.__len__

    def words(self, cells: Sequence[str]) -> Words:
        """The words of some more cells."""
        codes = array("i", map(self._codes.__getitem__, cells))
        new = len(self._codes) - len(self.table)
        if new:
            self.table.extend(reversed(list(islice(reversed(self._codes), new))))
        return Words(codes, self.table)


class Columns:
    """Cells of columns in one block after the other, as numbers and words by their roles."""

    def __init__(self, roles: Mapping[str, Role]) -> None:
        self.roles = roles
        self._most = most_words(roles)
        self._numeric = {name for name, role in roles.items() if role != "word"}
        self._coders = {name: Coder() for name, role in roles.items() if role != "number"}

    def of(self, cells: Mapping[str, Sequence[str]]) -> tuple[dict[str, Numbers], dict[str, Words]]:
        """The numbers and words of the next block."""
        numbers: dict[str, Numbers] = {}
        words: dict[str, Words] = {}
        for name in [name for name in self.roles if name in self._numeric]:
            numbers[name] = numbers_of(cells[name])
            if self.roles[name] == "any" and holds_others(numbers[name]):
                del numbers[name]
                self._numeric.remove(name)
        for name, coder in list(self._coders.items()):
            words[name] = coder.words(cells[name])
            if self.roles[name] == "any" and len(coder.table) > self._most:
                del words[name], self._coders[name]
        return numbers, words


def holds_others(column: Numbers) -> bool:
    """Whether a cell is neither a number nor a gap."""
    return not all(is_missing(cell, allowed=True) for cell in column.odd.values())


class CellsReader(WithHeaderRow):
    """A table of cells that are at hand, by the names of their columns."""

    def __init__(self, source: str, columns: Mapping[str, Sequence[str]]) -> None:
        self.source = source
        self.header: Sequence[str] = list(columns)
        self._columns = columns

    def blocks(self, roles: Mapping[str, Role]) -> Iterator[TableBlock]:
        """All rows in one."""
        count = len(next(iter(self._columns.values()), ()))
        if count:
            yield TableBlock(count, *Columns(roles).of(self._columns))
