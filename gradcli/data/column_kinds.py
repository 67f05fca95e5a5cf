"""What the columns of a table hold: numbers, categories, or nothing that a model learns from.

One rule for whoever sorts columns without being told: `gradcli init`, and `data:` without inputs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from gradcli.data.tabular.cells import CellsReader, is_missing
from gradcli.data.tabular.collected import (
    GAP,
    Gaps,
    TypedTable,
    WordColumn,
    collect,
    without_nan,
)
from gradcli.dataclass import dataclass
from gradcli.wording import quantity

MOST_CATEGORIES = 100  # of a column; each is an input of its own
MANY = MOST_CATEGORIES + 1  # different values, or more; nobody counts them in large tables
ROWS_OF_CATEGORY = 2  # at least, on average
CLASSES_AS_NUMBERS = 20  # marks, stars and days are counted like this and may well be classes
ROWS_OF_CLASS = 5  # at least, on average
_IDENTITY = re.compile(r"(.*[ _.-])?(id|uuid|guid|index|idx|key|nr|row|rownames)|unnamed.*|", re.I)
_CAMEL = re.compile(r".*[a-z](Id|ID|Index|Key)")

Kind = Literal["numeric", "category", "unused"]


@dataclass(frozen=True)
class ColumnKind:
    """The kind of a column, as it is inferred.

    Attributes:
        reason: of an unused column, what it holds.
        gaps: rows that lack a value.
        distinct: different values; may be MANY where there are as many or more.
        whole: they are whole numbers.
    """

    name: str
    kind: Kind
    reason: str
    gaps: int
    distinct: int
    whole: bool


def kind_of_column(name: str, cells: Sequence[str]) -> ColumnKind:
    """The same of cells as they are written."""
    reader = CellsReader("the column", {name: cells})
    return kind_in(collect(reader, {name: "any"}, Gaps("mean", {})), name)


def kind_in(table: TypedTable, name: str) -> ColumnKind:
    """What a column is, that was read in the role "any".

    Numbers make a numeric column, words that come again a category. Unused are columns without
    values, with one value alone, with another value in every row (text, or whole numbers that count
    the rows or are called an id), and all other text.
    """
    numbers, words = table.numbers.get(name), table.words.get(name)
    if numbers is None:
        return _kind_of_words(name, table.count, words)
    values = without_nan(numbers)
    gaps = len(numbers) - len(values)
    distinct = MANY if words is None else len(set(values))
    whole = bool(values) and all(map(float.is_integer, values))
    reason = _useless(len(values), distinct, gaps)
    if not reason and whole and _identifies(name, values):
        reason = "another number in every row"
    return ColumnKind(name, "unused" if reason else "numeric", reason, gaps, distinct, whole)


def _kind_of_words(name: str, rows: int, words: WordColumn | None) -> ColumnKind:
    if words is None:
        reason = f"neither numbers nor up to {quantity(MOST_CATEGORIES, 'different word')}"
        return ColumnKind(name, "unused", reason, 0, MANY, False)
    marks = {code for code, word in enumerate(words.table) if is_missing(word, allowed=True)}
    gaps = sum(map(words.codes.count, {GAP, *marks}))
    distinct, values = len(words.table) - len(marks), rows - gaps
    reason = _useless(values, distinct, gaps) or _no_category(values, distinct)
    return ColumnKind(name, "unused" if reason else "category", reason, gaps, distinct, False)


def _useless(values: int, different: int, gaps: int) -> str:
    if not values:
        return "no value"
    if different > 1:
        return ""
    return "one value and gaps" if gaps else "the same value in every row"


def _identifies(name: str, numbers: Sequence[float]) -> bool:
    """Whether numbers, all different, are names of rows: by the column's name, or they count."""
    if len(numbers) < 2:
        return bool(_is_called_identity(name))
    step = numbers[1] - numbers[0]
    if len(numbers) > 2 and abs(step) == 1 and all(b - a == step for a, b in pairwise(numbers)):
        return True
    return _is_called_identity(name) and len(set(numbers)) == len(numbers)


def _is_called_identity(name: str) -> bool:
    return bool(_IDENTITY.fullmatch(name.strip()) or _CAMEL.fullmatch(name.strip()))


def _no_category(values: int, different: int) -> str:
    if different == values > 1:
        return "another text in every row"
    if different > MOST_CATEGORIES or different * ROWS_OF_CATEGORY > values:
        return f"text with {quantity(different, 'different value')} in {quantity(values, 'row')}"
    return ""


def is_of_classes(target: ColumnKind, rows: int) -> bool:
    """Whether a target is classes and not numbers to predict: words, or few whole numbers."""
    if target.kind == "category":
        return True
    few = target.distinct <= CLASSES_AS_NUMBERS and target.distinct * ROWS_OF_CLASS <= rows
    return target.whole and few
