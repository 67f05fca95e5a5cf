"""Columns of a table as inputs: numeric ones standardised, categories as one-hot."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from gradcli import engine
from gradcli.data.exact_sums import exact_sum
from gradcli.data.facts import CategoryColumn, DataFacts, NumericColumn
from gradcli.data.samples import tensor_of
from gradcli.data.tabular.cells import indices_among
from gradcli.data.tabular.collected import (
    GAP,
    TypedTable,
    WordColumn,
    short,
)
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.wording import join_words

_TOGETHER = 1 << 20  # numbers that are encoded at once, in whole rows
Rows = slice | Tensor  # some rows of a table: a stretch, or their numbers


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

    def encode(self, table: TypedTable) -> Tensor:
        """All rows in the order of the table, as float32 of shape (rows, width).

        A row is the numeric columns, then one number for each category of each column. A missing
        number becomes the mean; a missing category its training frequencies, which are the means of
        its columns.
        """
        whole = engine.empty(table.count, self.width, dtype=engine.float32)
        columns = self._columns(table)
        for rows in self.stretches(table.count):
            _fill(whole[rows], columns, rows)
        return whole

    def in_order(self, table: TypedTable, order: Tensor) -> Iterator[Tensor]:
        """The same rows in another order, some at a time."""
        columns = self._columns(table)
        for stretch in self.stretches(table.count):
            indices = order[stretch]
            rows = engine.empty(indices.shape[0], self.width, dtype=engine.float32)
            _fill(rows, columns, indices)
            yield rows

    def stretches(self, count: int) -> Iterator[slice]:
        """The rows 0 to count - 1, some at a time: neither many calls nor much memory."""
        together = _TOGETHER // max(1, self.width) + 1
        return (slice(at, at + together) for at in range(0, count, together))

    def _columns(self, table: TypedTable) -> list[Callable[[Rows], Tensor]]:
        """What gives the inputs in some rows of each column, of shape (rows, inputs)."""
        numbers = [
            partial(_scaled, _float64(table.numbers[name]), *three)
            for name, three in self.numeric.items()
        ]
        words = [
            partial(_indicated, self._word_rows(table, name, table.words[name]), _one_hot(shares))
            for name, shares in self.category.items()
        ]
        return [*numbers, *words]

    def _word_rows(self, table: TypedTable, name: str, column: WordColumn) -> Tensor:
        """The row of each word's code in `_one_hot`, of which the last one is for gaps."""
        categories = list(self.category[name])
        row_of = indices_among(column.table, categories)
        odd = {code for code, word in enumerate(column.table) if word not in row_of}
        if odd:
            index = next(at for at, code in enumerate(column.codes) if code in odd)
            what = f"unknown category {short(column.table[column.codes[index]])}"
            table.refuse(index, name, f"{what}; known: {join_words(categories)}")
        rows = [
            *(row_of[word] for word in column.table),
            len(categories),
        ]  # GAP is the last one
        return tensor_of(array("q", map(rows.__getitem__, column.codes)), (table.count,))

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
        numeric = {
            column.name: (column.fill, column.shift, column.scale) for column in facts.numeric
        }
        return cls(numeric, {column.name: dict(column.shares) for column in facts.category})

    @classmethod
    def fitted(
        cls,
        table: TypedTable,
        numeric: Sequence[str],
        category: Sequence[str],
        train: bytes | bytearray,
        standardize: bool,
    ) -> Encoder:
        """Fit means, deviations and shares to rows whose byte is 1; categories are of all rows."""
        marks = engine.frombuffer(train, dtype=engine.uint8)
        rows = marks.nonzero().reshape(-1) if category else marks
        return cls(
            {name: fit_number(table.numbers[name], marks, standardize) for name in numeric},
            {name: fit_category(table.words[name], rows) for name in category},
        )


def _float64(values: array[float]) -> Tensor:
    return engine.frombuffer(values, dtype=engine.float64)


def _fill(rows: Tensor, columns: Sequence[Callable[[Rows], Tensor]], indices: Rows) -> None:
    """Put the inputs of each column side by side, which takes less memory than joining them."""
    end = 0
    for column in columns:
        inputs = column(indices)
        begin, end = end, end + inputs.shape[1]
        rows[:, begin:end] = inputs


def _at(whole: Tensor, indices: Rows) -> Tensor:
    return whole[indices] if isinstance(indices, slice) else engine.index_select(whole, 0, indices)


def _scaled(whole: Tensor, fill: float, shift: float, scale: float, indices: Rows) -> Tensor:
    """(x - shift) / scale in float64, rounded once to float32, as a column."""
    values = _at(whole, indices)
    gaps = engine.isnan(values)
    if gaps.any().item():
        values = engine.where(gaps, engine.full_like(values, fill), values)
    by = engine.tensor([shift, scale], dtype=engine.float64)
    return ((values - by[0]) / by[1]).to(engine.float32).reshape(-1, 1)


def _indicated(codes: Tensor, one_hot: Tensor, indices: Rows) -> Tensor:
    return engine.index_select(one_hot, 0, _at(codes, indices))


def _one_hot(shares: Mapping[str, float]) -> Tensor:
    """A row for each category, and one of their shares."""
    count = len(shares)
    numbers = array("f", bytes(4 * count * count))
    for at in range(count):
        numbers[at * count + at] = 1.0
    numbers.extend(shares.values())
    return tensor_of(numbers, (count + 1, count))


def values_in(table: TypedTable, names: Sequence[str], order: Tensor | None = None) -> Tensor:
    """Numeric columns as float32 of shape (rows, columns)."""
    columns = [_value_in(table, name, order) for name in names]
    return columns[0] if len(columns) == 1 else engine.cat(columns, dim=1)


def _value_in(table: TypedTable, name: str, order: Tensor | None) -> Tensor:
    values = _float64(table.numbers[name])
    in_order = values if order is None else engine.index_select(values, 0, order)
    return in_order.to(engine.float32).reshape(-1, 1)


def classes_in(table: TypedTable, name: str, order: Tensor | None = None) -> Tensor:
    """The codes of a column of words as int64 of shape (rows,)."""
    codes = engine.frombuffer(table.words[name].codes, dtype=engine.int32)
    in_order = codes if order is None else engine.index_select(codes, 0, order)
    return in_order.to(engine.int64)


def fit_number(
    values: array[float], marks: Tensor, standardize: bool
) -> tuple[float, float, float]:
    """(mean, mean, deviation of the population) of what is not missing; else (mean, 0, 1).

    It is about the rows whose byte is 1. Sums are exact before they are rounded once: the order of
    the rows does not matter.
    """
    numbers = _float64(values)
    total = exact_sum(numbers, marks)
    if math.isnan(total):
        marks = marks * engine.logical_not(engine.isnan(numbers)).to(engine.uint8)
        total = exact_sum(numbers, marks)
    count = bytes(marks.memoryview()).count(1)
    mean = total / count if count else 0.0
    if not standardize:
        return mean, 0.0, 1.0
    # The kernel's `pow` is that of Python's `**`: a product has other last bits now and then.
    deviation = math.sqrt(exact_sum(numbers, marks, mean, 2.0) / max(count, 1))
    return mean, mean, deviation or 1.0  # a column that never changes becomes 0


def fit_category(column: WordColumn, rows: Tensor) -> dict[str, float]:
    """How often each category occurs among the values that are not missing."""
    codes = engine.frombuffer(column.codes, dtype=engine.int32)
    counts = Counter(_as_array(engine.index_select(codes, 0, rows), "i"))
    counts.pop(GAP, None)
    total = counts.total() or 1
    return {word: counts[code] / total for code, word in enumerate(column.table)}


def _as_array(numbers: Tensor, code: str) -> Any:
    """The numbers of a tensor as a Python array, which is quick to iterate over."""
    result = array(code)
    result.frombytes(numbers.contiguous().memoryview())
    return result
