"""Checks of the numbers in a file, block by block.

The engine takes no part, so that a thread may do this while steps are recorded and replayed. What
is done with each byte is one look into a table, and bytes of many numbers are compared at once as
one long whole number.
"""

from __future__ import annotations

import sys
from typing import Protocol

from gradcli.dataclass import dataclass

_LITTLE = sys.byteorder == "little"
_FEW = 64  # at most one number in so many is checked singly


class Check(Protocol):
    """A check of the numbers of a file."""

    @property
    def name(self) -> str:
        """What passing it is remembered by; all that decides is in it."""

    @property
    def offset(self) -> int:
        """Bytes before the first number."""

    def fault(self, block: bytes, first: int) -> str | None:
        """What is wrong with one of these numbers; byte `first` of the numbers begins them."""


@dataclass(frozen=True)
class FiniteCheck:
    """All float32 numbers are finite.

    Attributes:
        row: numbers of a sample.
    """

    offset: int
    row: int

    @property
    def name(self) -> str:
        """The same for every shape of the same numbers."""
        return f"finite float32 from {self.offset}"

    def fault(self, block: bytes, first: int) -> str | None:
        """Finite numbers have some bit of the exponent unset."""
        high = _byte_of(block, 4, 3)
        if b"\x7f" not in high and b"\xff" not in high:
            return None
        exponent = _marks(high, b"\x7f\xff")
        index = _first(exponent & _marks(_byte_of(block, 4, 2), bytes(range(0x80, 0x100))))
        if index is None:
            return None
        value = memoryview(block)[4 * index : 4 * index + 4].cast("f")[0]
        sample = (first // 4 + index) // self.row
        return f"sample {sample} holds {value}, expected numbers of float32"


@dataclass(frozen=True)
class Below:
    """All whole numbers of `width` bytes are 0 or more, and below a limit.

    Attributes:
        what: the numbers for people, such as "token".
        little: whether the lowest byte of each comes first.
    """

    offset: int
    width: int
    limit: int
    what: str
    little: bool = _LITTLE

    @property
    def name(self) -> str:
        """By what is looked at."""
        order = "low" if self.little else "high"
        return f"width {self.width}, {order} first, below {self.limit} from {self.offset}"

    def fault(self, block: bytes, first: int) -> str | None:
        """The first one that is not, if there is one."""
        if self._all_below(block):
            return None
        index = _first(self._above(block))
        if index is None:
            return None
        value = self._value(block, index)
        count = first // self.width + index
        return f"{self.what} {count} is {value}, expected 0 to {self.limit - 1}"

    def _all_below(self, block: bytes) -> bool:
        """Whether that is seen quickly: by the highest bytes, and few numbers beside them."""
        largest = (self.limit - 1).to_bytes(self.width, "little")
        top = self.width - 1
        while top and not largest[top]:
            if self._bytes(block, top).strip(b"\0"):
                return False
            top -= 1
        high, allowed = self._bytes(block, top), largest[top]
        if high.translate(None, bytes(range(allowed + 1))):
            return False
        if top == 0:
            return True
        mark = bytes([allowed])
        if high.count(mark) > len(high) // _FEW:
            return False
        index = high.find(mark)
        while index >= 0:
            if self._value(block, index) >= self.limit:
                return False
            index = high.find(mark, index + 1)
        return True

    def _above(self, block: bytes) -> int:
        """Marks of those above: byte by byte from the highest, larger, or equal and open."""
        largest = (self.limit - 1).to_bytes(self.width, "little")
        above, equal = 0, -1
        for number in reversed(range(self.width)):
            values, allowed = self._bytes(block, number), largest[number]
            above |= equal & _marks(values, bytes(range(allowed + 1, 256)))
            equal &= _marks(values, bytes([allowed]))
        return above

    def _bytes(self, block: bytes, number: int) -> bytes:
        """That byte of each number, counted from the lowest."""
        at = number if self.little else self.width - 1 - number
        return block[at :: self.width]

    def _value(self, block: bytes, index: int) -> int:
        raw = block[self.width * index : self.width * (index + 1)]
        return int.from_bytes(raw, "little" if self.little else "big")


def _byte_of(block: bytes, width: int, number: int) -> bytes:
    """That byte of each number, counted from the lowest."""
    return block[(number if _LITTLE else width - 1 - number) :: width]


def _marks(values: bytes, marked: bytes) -> int:
    """A whole number with a byte for each of those values, in their order: 1 for a marked one."""
    table = bytearray(256)
    for value in marked:
        table[value] = 1
    return int.from_bytes(values.translate(table), "little")


def _first(marks: int) -> int | None:
    """The index of the first mark."""
    return ((marks & -marks).bit_length() - 1) // 8 if marks else None
