"""Cells as numbers and words: the exact rule of `number_of`, at the speed of C where it agrees."""

from __future__ import annotations

import math
import re
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from gradcli import engine
from gradcli.data.tabular.reader import Block, Numbers, Role, WithHeaderRow, Words, most_words
from gradcli.engine.array import empty, run

MARKS = frozenset({"", "NA"})
LARGEST = 3.4e38  # float32, which is computed in, holds no more
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_FEW = 256  # values, for which the engine is not asked
_COMMON_GAPS = frozenset({*MARKS, "nan", "NaN"})


def is_missing(cell: str, allowed: bool) -> bool:
    """Whether a cell is empty or NA; `nan` counts only where missing values are allowed."""
    return cell.strip() in MARKS or (allowed and cell.strip().lower() == "nan")


def number_of(cell: str) -> float:
    """The number of a cell; NaN where it is none, or outside float32, which is computed in."""
    text = cell.strip()
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    return value if abs(value) < LARGEST else math.nan


def numbers_of(cells: Sequence[str], underscores: bool = True) -> Numbers:
    """The number of each cell; `underscores` says whether there may be any in them.

    `float` takes all that `number_of` takes, and besides that digits parted by underscores,
    infinity and NaN.
    """
    if underscores and any("_" in cell for cell in cells):
        return _one_by_one(cells)
    try:
        values = array("d", map(float, cells))
    except ValueError:
        return _with_gaps(cells)
    return Numbers(values, {}) if all_fit(values) else _one_by_one(cells)


def all_fit(values: array[float]) -> bool:
    """Whether every value is a number in float32, as `number_of` has them."""
    if len(values) < _FEW:
        return all(abs(value) < LARGEST for value in values)
    numbers, squares = engine.frombuffer(values, dtype=engine.float64), empty((1,), engine.float64)
    run("sum_squares", numbers.array, squares)  # at once; it is too large now and then
    return squares.tolist()[0] < LARGEST**2 or bool(numbers.abs().max().item() < LARGEST)


def _with_gaps(cells: Sequence[str]) -> Numbers:
    """As above, for columns of numbers and of gaps as most people write them."""
    gaps, nan = _COMMON_GAPS, math.nan
    try:
        values = array("d", [nan if cell in gaps else float(cell) for cell in cells])
    except ValueError:
        return _one_by_one(cells)
    odd = {place: cell for place, cell in enumerate(cells) if cell in gaps}
    numbers = array("d", [value for value in values if value == value])
    fits = len(numbers) + len(odd) == len(cells) and all_fit(numbers)
    return Numbers(values, odd) if fits else _one_by_one(cells)


def _one_by_one(cells: Sequence[str]) -> Numbers:
    values = array("d", map(number_of, cells))
    odd = {place: cells[place] for place, value in enumerate(values) if value != value}
    return Numbers(values, odd)


class Coder:
    """Words of one column as places in a table of the different ones, in order of appearance."""

    def __init__(self) -> None:
        self.table: list[str] = []
        self._places: defaultdict[str, int] = defaultdict()
        self._places.default_factory = self._places.__len__

    def words(self, cells: Sequence[str]) -> Words:
        """The words of some more cells."""
        codes = array("i", map(self._places.__getitem__, cells))
        new = len(self._places) - len(self.table)
        if new:
            self.table.extend(reversed(list(islice(reversed(self._places), new))))
        return Words(codes, self.table)


class Columns:
    """Cells of columns in one block after the other, as numbers and words by their roles."""

    def __init__(self, roles: Mapping[str, Role]) -> None:
        self.roles = roles
        self._most = most_words(roles)
        self._numeric = {name for name, role in roles.items() if role != "word"}
        self._coders = {name: Coder() for name, role in roles.items() if role != "number"}

    def of(
        self, cells: Mapping[str, Sequence[str]], underscores: bool = True
    ) -> tuple[dict[str, Numbers], dict[str, Words]]:
        """The numbers and words of the next block."""
        numbers: dict[str, Numbers] = {}
        words: dict[str, Words] = {}
        for name in [name for name in self.roles if name in self._numeric]:
            numbers[name] = numbers_of(cells[name], underscores)
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

    def blocks(self, roles: Mapping[str, Role]) -> Iterator[Block]:
        """All rows in one."""
        count = len(next(iter(self._columns.values()), ()))
        if count:
            yield Block(count, *Columns(roles).of(self._columns))
