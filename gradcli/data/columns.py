"""Columns of a table as numbers: numeric ones standardised, categories as one-hot."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from gradcli.data.facts import CategoryColumn, DataFacts, NumericColumn
from gradcli.data.files import shown
from gradcli.dataclass import dataclass
from gradcli.errors import DataError
from gradcli.registry import did_you_mean
from gradcli.wording import listed, quantity, verb

MARKS = frozenset({"", "NA"})
FIRST_ROW = 2  # the header is row 1
# $1,234.50 or 12 %: a currency or unit, and commas before each three digits.
_MONEY = re.compile(
    r"-?[$€£¥]?\s*-?\d{1,3}(?:,\d{3})*(?:\.\d+)?\s*[$€£¥%]?|[$€£¥]\s*-?\d+(?:\.\d+)?"
)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


DELIMITERS = {"a comma": ",", "a semicolon": ";", "a tab": "\t", "a bar": "|"}


@dataclass(frozen=True)
class Table:
    """Rows of cells below a header; `numbers[i]` is the row in the file that rows[i] came from."""

    source: str
    header: list[str]
    rows: list[list[str]]
    numbers: list[int]

    @classmethod
    def of(cls, parsed: list[list[str]], source: str) -> Table:
        """From parsed rows; the first one is the header."""
        if len(parsed) < 2:
            what = "no rows below the header" if parsed else "no header and no rows"
            raise DataError(f"{source}: the table is empty: {what}", code="E304")
        return cls(source, parsed[0], parsed[1:], list(range(FIRST_ROW, len(parsed) + 1)))

    def need(self, columns: Sequence[str]) -> None:
        """Every column exists exactly once; shows both lists otherwise."""
        twice = next((c for c in columns if self.header.count(c) > 1), None)
        missing = [c for c in columns if c not in self.header]
        if not missing and twice is None:
            return
        what = (
            f"column '{shown(twice)}' appears twice"
            if twice is not None
            else f"no column is called {', '.join(map(repr, missing))}"
        )
        others = [name for name in self.header if name not in columns]
        near = did_you_mean(missing[0], others) if len(missing) == 1 else ""
        what += f"; {shown(near)}" if near else ""
        raise DataError(
            f"{self.source}: {what}",
            code="E304",
            notes=(
                f"the config names: {', '.join(columns)}",
                f"the file has: {shown(', '.join(self.header))}",
                *self._ways_out(columns),
            ),
        )

    def _ways_out(self, columns: Sequence[str]) -> Iterator[str]:
        """Where the columns are there, but for another delimiter or spaces around their names."""
        plain = {name.strip() for name in self.header}
        if set(columns) <= plain and not set(columns) <= set(self.header):
            yield "the names in the file have spaces around them; take those out"
        for name, delimiter in DELIMITERS.items():
            if len(self.header) == 1 and set(columns) <= set(self.header[0].split(delimiter)):
                yield f'its delimiter is {name}: write data.delimiter: "{shown(delimiter)}"'

    def column(self, name: str) -> list[str]:
        """The cells of one column."""
        at = self.header.index(name)
        return [row[at] for row in self.rows]

    def only(self, keep: Sequence[int]) -> Table:
        """The rows at these positions, in this order."""
        rows, numbers = [self.rows[i] for i in keep], [self.numbers[i] for i in keep]
        return Table(self.source, self.header, rows, numbers)

    def refuse(self, index: int, column: str, what: str) -> NoReturn:
        """An error at one cell."""
        row, at = self.numbers[index], self.header.index(column) + 1
        name = shown(column)
        raise DataError(f"{self.source}: row {row}, column {at} ({name}): {what}", code="E304")


def is_missing(cell: str, allowed: bool) -> bool:
    """Whether a cell is empty or NA; `nan` counts only where missing values are allowed."""
    return cell.strip() in MARKS or (allowed and cell.strip().lower() == "nan")


def without_gaps(table: Table, columns: Sequence[str]) -> tuple[Table, tuple[str, ...]]:
    """Without the rows that `missing: drop` leaves out, and a line that says how many."""
    used = [table.header.index(column) for column in columns]
    keep = [
        index
        for index, row in enumerate(table.rows)
        if not any(is_missing(row[at], allowed=True) for at in used)
    ]
    dropped = len(table.rows) - len(keep)
    if not keep:
        raise DataError(
            f"{table.source}: missing: drop leaves no rows: each of {dropped} lacks a value",
            code="E305",
        )
    if not dropped:
        return table, ()
    note = (
        f"{Path(table.source).name}: {dropped} of {quantity(len(table.rows), 'row')} "
        f"{verb(dropped, 'lacks', 'lack')} a value and {verb(dropped)} left out (missing: drop)"
    )
    return table.only(keep), (note,)


def numbers(table: Table, name: str, allowed: bool) -> list[float | None]:
    """A numeric column; None for what is missing, where that is allowed."""
    cells = table.column(name)
    values = [None if is_missing(cell, allowed) else number_of(cell) for cell in cells]
    _refuse_first(
        table, name, [i for i, x in enumerate(values) if (not allowed if x is None else x != x)]
    )
    return values


def number_of(cell: str) -> float:
    """The number of a cell; NaN where it is none, or outside float32, which is computed in."""
    text = cell.strip()
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    return value if abs(value) < 3.4e38 else math.nan


def _refuse_first(table: Table, name: str, wrong: Sequence[int], what: str = "number") -> None:
    """An error at the topmost of these rows, which are in another order than in the file."""
    if not wrong:
        return
    first = min(wrong, key=table.numbers.__getitem__)
    cell = table.column(name)[first]
    if is_missing(cell, allowed=False):
        cure = "`missing: drop` or `mean` accept it"
        table.refuse(first, name, f"expected a {what}, found the missing value {cell!r}; {cure}")
    plain = re.sub(r"[^\d.-]", "", cell)
    cure = f"; write it as {plain}" if _MONEY.fullmatch(cell.strip()) else ""
    table.refuse(first, name, f"expected a number, found {_short(cell)}{cure}")


def categories(table: Table, name: str, allowed: bool) -> list[str | None]:
    """A category column; None for what is missing, where that is allowed."""
    cells = [None if is_missing(cell, allowed) else cell for cell in table.column(name)]
    gaps = [] if allowed else [index for index, cell in enumerate(cells) if cell is None]
    _refuse_first(table, name, gaps, "category")
    return cells


def sorted_table(values: Sequence[str | None]) -> list[str]:
    """The distinct categories, sorted by their bytes."""
    return sorted({v for v in values if v is not None}, key=lambda v: v.encode())


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else cell[:40] + "...")


@dataclass(frozen=True)
class Encoder:
    """Turns rows into input numbers; everything in it was fitted on the training rows.

    Attributes:
        numeric: per numeric column what fills a gap (the mean), what is subtracted, what divides.
        category: per category column, each category and how often it occurs (0 to 1).
    """

    numeric: Mapping[str, tuple[float, float, float]]
    category: Mapping[str, Mapping[str, float]]

    @property
    def width(self) -> int:
        """How many numbers one row becomes."""
        return len(self.numeric) + sum(len(table) for table in self.category.values())

    def encode(self, table: Table, allowed: bool) -> array[float]:
        """Row after row: the numeric columns, then one number for each category of each column.

        A missing number becomes the mean; a missing category its training frequencies, which are
        the means of its columns.
        """
        columns: list[list[float]] = []
        for name, (fill, shift, scale) in self.numeric.items():
            filled = (fill if v is None else v for v in numbers(table, name, allowed))
            columns.append([(v - shift) / scale for v in filled])
        for name, shares in self.category.items():
            cells = categories(table, name, allowed)
            self._check_known(table, name, cells)
            columns += [
                [share if v is None else float(v == known) for v in cells]
                for known, share in shares.items()
            ]
        return array("f", (column[i] for i in range(len(table.rows)) for column in columns))

    def _check_known(self, table: Table, name: str, cells: Sequence[str | None]) -> None:
        known = self.category[name]
        for index, cell in enumerate(cells):
            if cell is not None and cell not in known:
                what = f"unknown category {_short(cell)}; known: {listed(known)}"
                table.refuse(index, name, what)

    def columns(self) -> dict[str, Any]:
        """As fields of DataFacts, in the order of the inputs."""
        return {
            "numeric": tuple(NumericColumn(name, *three) for name, three in self.numeric.items()),
            "category": tuple(
                CategoryColumn(name, tuple(table.items())) for name, table in self.category.items()
            ),
        }

    @classmethod
    def of(cls, facts: DataFacts) -> Encoder:
        """The inverse of `columns`."""
        numeric = {one.name: (one.fill, one.shift, one.scale) for one in facts.numeric}
        return cls(numeric, {one.name: dict(one.shares) for one in facts.category})


def fit_number(values: Sequence[float | None], standardize: bool) -> tuple[float, float, float]:
    """(mean, mean, deviation of the population) of what is not missing; else (mean, 0, 1)."""
    known = [v for v in values if v is not None]
    mean = math.fsum(known) / len(known) if known else 0.0
    if not standardize:
        return mean, 0.0, 1.0
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in known) / max(len(known), 1))
    return mean, mean, deviation or 1.0  # a column that never changes becomes 0


def fit_category(values: Sequence[str | None], known: Sequence[str]) -> dict[str, float]:
    """How often each category occurs among the values that are not missing."""
    total = sum(1 for v in values if v is not None) or 1
    return {name: values.count(name) / total for name in known}
