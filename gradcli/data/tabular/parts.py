"""Several files that are one table: the rows of one below those of the other."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence

from gradcli.data.tabular.reader import (
    FIRST_ROW,
    Role,
    RowLocation,
    TableBlock,
    TableReader,
    Words,
    most_words,
)
from gradcli.errors import DataError


class PartsReader:
    """The rows of several files with one header; each is opened when the one above it is read."""

    def __init__(self, openers: Sequence[Callable[[], TableReader]], source: str) -> None:
        self.source = source
        self._openers = openers
        self._parts: list[TableReader] = []
        self._begins: list[int] = []  # the number of the first row of each part
        self.header: Sequence[str] = self._open(FIRST_ROW).header

    @property
    def begins(self) -> Sequence[int]:
        """The first row of each file but the first one, counted from 0, as far as it was read."""
        return [number - FIRST_ROW for number in self._begins[1:]]

    def _open(self, begin: int) -> TableReader:
        part = self._openers[len(self._parts)]()
        if self._parts and list(part.header) != list(self.header):
            what = _difference(self.header, part.header)
            first = self._parts[0].source
            raise DataError(
                f"{part.source}: its columns are not those of {first}: {what}",
                code="E304",
                notes=("all files of a pattern have the same columns in the same order",),
            )
        self._parts.append(part)
        self._begins.append(begin)
        return part

    def blocks(self, roles: Mapping[str, Role]) -> Iterator[TableBlock]:
        """The columns that are named, as the protocol says."""
        numeric = {name for name, role in roles.items() if role != "word"}
        coders = {name: _Recoder() for name, role in roles.items() if role != "number"}
        number, part = FIRST_ROW, self._parts[0]
        while True:
            for block in part.blocks(roles):
                numeric &= block.numbers.keys()
                words = {}
                for name, coder in list(coders.items()):
                    if name in block.words:
                        words[name] = coder.words(block.words[name])
                    if name not in words or (
                        roles[name] == "any" and len(coder.table) > most_words(roles)
                    ):
                        words.pop(name, None)
                        del coders[name]
                yield TableBlock(
                    block.count, {name: block.numbers[name] for name in numeric}, words
                )
                number += block.count
            for coder in coders.values():
                coder.begin()
            if len(self._parts) == len(self._openers):
                return
            part = self._open(number)

    def locate(self, number: int) -> RowLocation:
        """The file of a row, and its number there."""
        at = bisect_right(self._begins, number) - 1
        return self._parts[at].locate(number - self._begins[at] + FIRST_ROW)


def begins_of(reader: TableReader) -> Sequence[int]:
    """The first row of each file but the first one, as far as they were read; of one file none."""
    return reader.begins if isinstance(reader, PartsReader) else ()


def _difference(ours: Sequence[str], theirs: Sequence[str]) -> str:
    lacking = [name for name in ours if name not in theirs]
    if lacking:
        return f"it has no {lacking[0]!r}"
    more = [name for name in theirs if name not in ours]
    return f"{more[0]!r} is not among those" if more else "they are in another order"


class _Recoder:
    """Words of all parts in one table, in order of appearance."""

    def __init__(self) -> None:
        self.table: list[str] = []
        self._indices: dict[str, int] = {}
        self._codes: list[int] = []  # of the words of the part that is read

    def begin(self) -> None:
        """The next part has a table of its own."""
        self._codes = []

    def words(self, words: Words) -> Words:
        """Some more words of a part."""
        indices = self._indices
        new = words.table[len(self._codes) :]
        self._codes += [indices.setdefault(word, len(indices)) for word in new]
        if len(indices) > len(self.table):
            self.table = list(indices)
        return Words(array("i", map(self._codes.__getitem__, words.codes)), self.table)
