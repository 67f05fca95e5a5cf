"""What the columns of a table hold: numbers, categories, or nothing that a model learns from.

One rule for whoever sorts columns without being told; it takes for a number and for missing what
the reader of tables does (columns.py).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from gradcli.data.columns import is_missing, number_of
from gradcli.dataclass import dataclass
from gradcli.wording import quantity

MOST_CATEGORIES = 100  # of a column; each is an input of its own
ROWS_OF_CATEGORY = 2  # at least, on average
CLASSES_AS_NUMBERS = 20  # marks, stars and days are counted like this and may well be classes
ROWS_OF_CLASS = 5  # at least, on average
_IDENTITY = re.compile(r"(.*[ _.-])?(id|uuid|guid|index|idx|key|nr|row|rownames)|unnamed.*|", re.I)
_CAMEL = re.compile(r".*[a-z](Id|ID|Index|Key)")

Kind = Literal["numeric", "category", "unused"]


@dataclass(frozen=True)
class ColumnKind:
    """What a column is taken for.

    Attributes:
        why: of an unused column, what it holds.
        gaps: rows that lack a value.
        distinct: different values.
        whole: they are whole numbers.
    """

    name: str
    kind: Kind
    why: str
    gaps: int
    distinct: int
    whole: bool


def kind_of_column(name: str, cells: Sequence[str]) -> ColumnKind:
    """Numbers make a numeric column, words that come again a category.

    Unused are columns without values, with one value alone, with another value in every row (text,
    or whole numbers that count the rows or are called an id), and free text.
    """
    values = [cell for cell in cells if not is_missing(cell, allowed=True)]
    different = len(set(values))
    gaps = len(cells) - len(values)
    numbers = [number_of(cell) for cell in values]
    numeric = bool(values) and not any(map(math.isnan, numbers))
    whole = numeric and all(number == int(number) for number in numbers)
    why = _useless(values, different, gaps)
    if not why and whole and different == len(values) and _identifies(name, numbers):
        why = "another number in every row"
    if not why and not numeric:
        why = _no_category(values, different)
    kind: Kind = "unused" if why else "numeric" if numeric else "category"
    return ColumnKind(name, kind, why, gaps, different, whole)


def _useless(values: Sequence[str], different: int, gaps: int) -> str:
    if not values:
        return "no value"
    if different > 1:
        return ""
    return "one value and gaps" if gaps else "the same value in every row"


def _identifies(name: str, numbers: Sequence[float]) -> bool:
    """Whether numbers, all different, are names of rows: by the column's name, or they count."""
    steps = {after - before for before, after in pairwise(numbers)}
    counts = len(numbers) > 2 and steps in ({1.0}, {-1.0})
    return counts or bool(_IDENTITY.fullmatch(name.strip()) or _CAMEL.fullmatch(name.strip()))


def _no_category(values: Sequence[str], different: int) -> str:
    if different == len(values) > 1:
        return "another text in every row"
    if different > MOST_CATEGORIES or different * ROWS_OF_CATEGORY > len(values):
        return (
            f"free text, {quantity(different, 'different value')} in {quantity(len(values), 'row')}"
        )
    return ""


def is_of_classes(target: ColumnKind, rows: int) -> bool:
    """Whether a target is classes and not numbers to predict: words, or few whole numbers."""
    if target.kind == "category":
        return True
    few = target.distinct <= CLASSES_AS_NUMBERS and target.distinct * ROWS_OF_CLASS <= rows
    return target.whole and few
