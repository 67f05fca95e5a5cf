"""What a reader of tables gives, whatever the format of the file: typed columns, block by block.

Who reads says of each column what it wants: numbers, words, or whichever the cells turn out to be.
No policy is in here: a reader tells which cells are no numbers, and collected.py judges them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, Protocol

from gradcli.dataclass import dataclass

Role = Literal["number", "word", "any"]
RowLocation = tuple[str, int]  # a file, and the number of a row in it

FIRST_ROW = 2  # the header is row 1
MOST_WORDS = 1 << 12  # of a column that may be either; with more it is no category
_ALL_WORDS = 1 << 20  # of all such columns together, about
_FEWEST_WORDS = 128  # which more than a category has


def most_words(roles: Mapping[str, Role]) -> int:
    """Words of a column that may be either, as long as they are kept: fewer in wide tables."""
    return max(_FEWEST_WORDS, min(MOST_WORDS, _ALL_WORDS // max(len(roles), 1)))


@dataclass(frozen=True)
class Numbers:
    """A column of one block as numbers.

    Attributes:
        values: what `number_of` says of each cell; NaN where it is no number.
        odd: the cells that are none, gaps among them, by their places in the block.
    """

    values: array[float]
    odd: Mapping[int, str]


@dataclass(frozen=True)
class Words:
    """A column of one block as words.

    Attributes:
        codes: of each cell its place in `table`.
        table: the different cells as they are written, gaps among them; it grows with the reading.
    """

    codes: array[int]
    table: Sequence[str]


@dataclass(frozen=True)
class TableBlock:
    """Some rows, in the file's order.

    A column of the role "number" is in `numbers`, one of the role "word" in `words`. One of the
    role "any" is in both; from the first block on in which a cell is neither a number nor a gap it
    is no longer in `numbers`, and once it has more than `most_words` no longer in `words`.
    """

    count: int
    numbers: Mapping[str, Numbers]
    words: Mapping[str, Words]


class TableReader(Protocol):
    """A table that is read once, from the top; a mistake raises when the reading reaches it.

    Attributes:
        source: the file, for messages.
        header: the names of the columns.
    """

    source: str
    header: Sequence[str]

    def blocks(self, roles: Mapping[str, Role]) -> Iterator[TableBlock]:
        """The columns that are named, each of which the header has once; called once."""

    def locate(self, number: int) -> RowLocation:
        """Where a row lies that was read, counted from FIRST_ROW over all rows."""


class WithHeaderRow:
    """A reader of one file that begins with the row of its header."""

    source: str

    def locate(self, number: int) -> RowLocation:
        """The same number."""
        return self.source, number


class WithoutHeaderRow:
    """A reader of one file whose header is no row of it."""

    source: str

    def locate(self, number: int) -> RowLocation:
        """Counted from 1."""
        return self.source, number - FIRST_ROW + 1
