"""Whole columns of a table, gathered from its blocks, and the topmost cell that is wrong."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import compress
from pathlib import Path
from typing import NoReturn

from gradcli.data.files import path_text
from gradcli.data.tabular.cells import is_missing, with_truth
from gradcli.data.tabular.parts import begins_of
from gradcli.data.tabular.reader import FIRST_ROW, Role, RowLocation, TableBlock, TableReader, Words
from gradcli.dataclass import dataclass
from gradcli.errors import DataError
from gradcli.wording import quantity, verb

_ACCEPTED = "`missing: drop` or `mean` accept it"
_FILES = (
    "fill it in the file, or split the series there into files of their own (file: parts/*.csv)"
)
GAP = -1  # the code of a word that is missing
Wrong = tuple[int, str]  # the row in the file of a cell that may not be there; what is wrong
# $1,234.50 or 12 %: a currency or unit, and commas before each three digits.
_MONEY = re.compile(
    r"-?[$€£¥]?\s*-?\d{1,3}(?:,\d{3})*(?:\.\d+)?\s*[$€£¥%]?|[$€£¥]\s*-?\d+(?:\.\d+)?"
)


@dataclass(frozen=True)
class WordColumn:
    """A column of words: `codes` are places in `table`, which is sorted by bytes; GAP for none."""

    codes: array[int]
    table: Sequence[str]


@dataclass(frozen=True)
class TypedTable:
    """Columns of a table in the file's order.

    Attributes:
        rows: the number of each row, counted from FIRST_ROW over all files.
        locate: the file of a row of such a number and its number there, for messages.
        begins: the first row of each file but the first one, counted from 0.
        numbers: NaN stands for a gap.
        words: the columns that are words; one of the role "any" may be in both.
        wrong: cells of columns of the role "any" that may not be there if the column is used.
    """

    source: str
    header: Sequence[str]
    rows: Sequence[int]
    locate: Callable[[int], RowLocation]
    numbers: Mapping[str, array[float]]
    words: Mapping[str, WordColumn]
    wrong: Mapping[str, Wrong] = field(default_factory=dict)
    begins: Sequence[int] = ()

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def refuse(self, index: int, column: str, what: str) -> NoReturn:
        """An error at one cell."""
        raise refusal(self.locate(self.rows[index]), self.header, column, what)

    def select(self, numbers: Sequence[str], words: Sequence[str]) -> TypedTable:
        """These columns alone, with these types; raises at the topmost of their wrong cells."""
        wrong = {name: self.wrong[name] for name in (*numbers, *words) if name in self.wrong}
        refuse_topmost(self.locate, self.header, wrong)
        return replace(
            self,
            numbers={name: self.numbers[name] for name in numbers},
            words={name: self.words[name] for name in words},
            wrong={},
        )

    def only(self, keep: bytes | bytearray) -> TypedTable:
        """The rows whose byte is 1."""
        return replace(
            self,
            rows=array("q", compress(self.rows, keep)),
            numbers={name: array("d", compress(x, keep)) for name, x in self.numbers.items()},
            words={
                name: _with_sorted_table(array("i", compress(x.codes, keep)), x.table)
                for name, x in self.words.items()
            },
        )


@dataclass(frozen=True)
class Gaps:
    """What a table does with cells that lack a value.

    Attributes:
        missing: `error`, `drop` the row, or `mean`, which is filled in later.
        never: columns whose gaps nothing fills, and what each is: a target, a group.
        series: rows follow each other, so that none can be left out.
    """

    missing: str
    never: Mapping[str, str]
    series: bool = False

    def allowed(self, name: str) -> bool:
        """Whether a column may have gaps; `nan` is one only there."""
        return self.missing != "error" and name not in self.never

    def cure(self, name: str) -> str:
        """What to do about a gap that is not allowed."""
        if name not in self.never:
            return "`missing: mean` accepts it" if self.series else _ACCEPTED
        way = _FILES if self.series else "`missing: drop` leaves its row out"
        return f"a {self.never[name]} is never filled; {way}"


def collect(
    reader: TableReader, roles: Mapping[str, Role], gaps: Gaps, first: int = FIRST_ROW
) -> TypedTable:
    """All rows of a table, the first of this number in the file.

    Columns of the role "any" are in `numbers` or `words`, in both or in neither.

    Raises:
        DataError: at the first mistake from above, in what a cell holds or in how it is written.
    """
    gathering = _Gathering(reader, roles, gaps, first)
    try:
        for block in reader.blocks(roles):
            gathering.add(block)
            if gathering.stops:
                break
    except DataError:
        gathering.refuse_first()  # report the cells of a row above before the form of one below
        raise
    gathering.refuse_first()
    return gathering.table()


def without_gaps(table: TypedTable) -> tuple[TypedTable, tuple[str, ...]]:
    """Without the rows that `missing: drop` leaves out, and a line that says how many."""
    keep = bytearray(b"\1") * table.count
    for values in table.numbers.values():
        for index in [index for index, value in enumerate(values) if value != value]:
            keep[index] = 0
    for column in table.words.values():
        for index in [index for index, code in enumerate(column.codes) if code == GAP]:
            keep[index] = 0
    dropped = table.count - sum(keep)
    if dropped == table.count:
        raise DataError(
            f"{table.source}: missing: drop leaves no rows: each of {dropped} lacks a value",
            code="E305",
        )
    if not dropped:
        return table, ()
    note = (
        f"{Path(table.source).name}: {dropped} of {quantity(table.count, 'row')} "
        f"{verb(dropped, 'lacks', 'lack')} a value and {verb(dropped)} left out (missing: drop)"
    )
    return table.only(keep), (note,)


def without_nan(values: array[float]) -> array[float]:
    """The values without gaps; as none is infinite, the sum tells whether there are gaps."""
    whole = not math.isnan(sum(values))
    return values if whole else array("d", (value for value in values if value == value))


class _Gathering:
    """Columns as far as they were read, and of each the first cell that may not be there."""

    def __init__(
        self, reader: TableReader, roles: Mapping[str, Role], gaps: Gaps, first: int
    ) -> None:
        self.reader, self.roles, self.gaps = reader, roles, gaps
        self.first, self.count = first, 0
        self.numbers = {name: array("d") for name, role in roles.items() if role != "word"}
        self.words = {name: _WordsSoFar() for name, role in roles.items() if role != "number"}
        self.wrong: dict[str, Wrong] = {}

    def add(self, block: TableBlock) -> None:
        """Add the next rows; a column of numbers may hold true and false."""
        sure = {name for name, role in self.roles.items() if role == "number"}
        numbers = {n: with_truth(x) if n in sure else x for n, x in block.numbers.items()}
        block = replace(block, numbers=numbers)
        for name in [name for name in self.words if name not in block.words]:
            del self.words[name]
        for name in [name for name in self.numbers if name not in block.numbers]:
            del self.numbers[name]
            self.wrong.pop(name, None)
        for name, words in self.words.items():
            words.add(block.words[name])
        for name, values in self.numbers.items():
            values.extend(block.numbers[name].values)
        dropped = self._dropped(block) if self.gaps.missing == "drop" else frozenset()
        for name, role in self.roles.items():
            if name not in self.wrong:
                self._note(name, role, block, dropped)
        self.count += block.count

    def _note(self, name: str, role: Role, block: TableBlock, dropped: frozenset[int]) -> None:
        """Note the first invalid cell of a column's new rows."""
        allowed = self.gaps.allowed(name)
        cells: Iterator[tuple[int, str]] = iter(())
        if role == "word" and not allowed:
            cells = self.words[name].gaps(block.words[name], nan=False)
        elif name in block.numbers:
            odd = block.numbers[name].odd.items()
            cells = ((at, cell) for at, cell in odd if not (allowed and is_missing(cell, True)))
        first = next(((at, cell) for at, cell in cells if at not in dropped), None)
        if first is not None:
            what = "category" if role == "word" else "number"
            wrong = wrong_cell(first[1], what, self.gaps.cure(name))
            self.wrong[name] = (self.first + self.count + first[0], wrong)

    def _dropped(self, block: TableBlock) -> frozenset[int]:
        """The rows of a block that lack a value in a column that is surely used."""
        indices: set[int] = set()
        for name, role in self.roles.items():
            if role == "number":
                odd = block.numbers[name].odd.items()
                indices.update(index for index, cell in odd if is_missing(cell, allowed=True))
            elif role == "word":
                indices.update(at for at, _ in self.words[name].gaps(block.words[name], nan=True))
        return frozenset(indices)

    @property
    def stops(self) -> bool:
        """Whether a cell was wrong of a column that is surely used."""
        return any(self.roles[name] != "any" for name in self.wrong)

    def refuse_first(self) -> None:
        """An error at the topmost such cell, if there is one."""
        sure = {name: wrong for name, wrong in self.wrong.items() if self.roles[name] != "any"}
        refuse_topmost(self.reader.locate, self.reader.header, sure)

    def table(self) -> TypedTable:
        if not self.count:
            raise DataError(
                f"{self.reader.source}: the table is empty: no rows below the header", code="E304"
            )
        columns = {name: words.column(self._nan(name)) for name, words in self.words.items()}
        if self.gaps.missing == "error":
            for name, column in columns.items():
                if name not in self.numbers and GAP in column.codes:
                    at = column.codes.index(GAP)
                    wrong = wrong_cell(self.words[name].cell(at), "category", self.gaps.cure(name))
                    self.wrong[name] = (self.first + at, wrong)
        return TypedTable(
            self.reader.source,
            self.reader.header,
            range(self.first, self.first + self.count),
            self.reader.locate,
            self.numbers,
            columns,
            self.wrong,
            begins_of(self.reader),
        )

    def _nan(self, name: str) -> bool:
        """Whether `nan` is a gap in a column of words."""
        return self.gaps.missing == "drop" or self.gaps.allowed(name)


class _WordsSoFar:
    """The codes of a column, and which of the words are marks of gaps."""

    def __init__(self) -> None:
        self.codes = array("i")
        self._table: Sequence[str] = ()
        self._size = 0
        self._marks: dict[bool, set[int]] = {False: set(), True: set()}

    def add(self, words: Words) -> None:
        """Some more words."""
        self.codes.extend(words.codes)
        self._table = words.table
        for nan, marks in self._marks.items():
            new = range(self._size, len(words.table))
            marks.update(code for code in new if is_missing(words.table[code], nan))
        self._size = len(words.table)

    def gaps(self, words: Words, *, nan: bool) -> Iterator[tuple[int, str]]:
        """The gaps of a block: where they are, and how they are written."""
        marks = self._marks[nan]
        if marks:
            for index, code in enumerate(words.codes):
                if code in marks:
                    yield index, words.table[code]

    def cell(self, index: int) -> str:
        """The text of a cell."""
        return self._table[self.codes[index]]

    def column(self, nan: bool) -> WordColumn:
        """The words without the marks of gaps."""
        marks = self._marks[nan]
        if not marks:
            return _with_sorted_table(self.codes, self._table)
        code = [GAP if at in marks else at for at in range(len(self._table))]
        return _with_sorted_table(array("i", map(code.__getitem__, self.codes)), self._table)


def _with_sorted_table(codes: array[int], table: Sequence[str]) -> WordColumn:
    """The words that occur, sorted by their bytes, and codes of these."""
    present = sorted(set(codes) - {GAP}, key=lambda code: table[code].encode())
    new_codes = {code: at for at, code in enumerate(present)} | {GAP: GAP}
    return WordColumn(
        array("i", map(new_codes.__getitem__, codes)), [table[code] for code in present]
    )


def refuse_topmost(
    locate: Callable[[int], RowLocation], header: Sequence[str], wrong: Mapping[str, Wrong]
) -> None:
    """An error at the topmost of wrong cells, in a row at the first from the left."""
    if wrong:
        name = min(wrong, key=lambda name: (wrong[name][0], header.index(name)))
        row, what = wrong[name]
        raise refusal(locate(row), header, name, what)


def wrong_cell(cell: str, what: str, cure: str) -> str:
    """The message about a cell that is no number, or that lacks a value."""
    if is_missing(cell, allowed=False):
        return f"expected a {what}, found the missing value {cell!r}; {cure}"
    plain = re.sub(r"[^\d.-]", "", cell)
    cure = f"; write it as {plain}" if _MONEY.fullmatch(cell.strip()) else ""
    return f"expected a number, found {short(cell)}{cure}"


def short(cell: str) -> str:
    """A cell for a message."""
    return repr(cell if len(cell) <= 40 else cell[:40] + "...")


def refusal(where: RowLocation, header: Sequence[str], column: str, what: str) -> DataError:
    """The error at one cell of a file."""
    source, row = where
    cell = f"row {row}, column {header.index(column) + 1} ({path_text(column)})"
    return DataError(f"{source}: {cell}: {what}", code="E304")
