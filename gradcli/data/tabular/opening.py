"""Which reader reads a file: the one place that knows formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from gradcli.data.files import Loaded, shown
from gradcli.data.foreign import kind_of
from gradcli.data.tabular.csv_reader import CsvReader
from gradcli.data.tabular.pieces import pieces_in, pieces_of, texts
from gradcli.data.tabular.reader import Block, Role, TableReader
from gradcli.errors import DataError

Advance = Callable[[int], object]


def open_table(file: Path | Loaded, delimiter: str, advance: Advance | None = None) -> TableReader:
    """A reader at the first row of a table in a file, or of one that is in memory.

    `advance` is told the unpacked bytes as they are read.
    """
    path = file if isinstance(file, Path) else file.path
    source = shown(path)
    pieces = pieces_of(file) if isinstance(file, Path) else pieces_in(file)
    start = next(pieces, b"")
    text = texts(_counted(start, pieces, advance), source)
    kind = kind_of(start[:64])
    if kind is None:
        return CsvReader(text, source, delimiter)
    try:
        return _Doubtful(CsvReader(text, source, delimiter), kind)
    except DataError as error:
        raise _no_table(error, source, kind) from None


def _counted(start: bytes, others: Iterator[bytes], advance: Advance | None) -> Iterator[bytes]:
    yield start
    if advance is not None:
        advance(len(start))
    for piece in others:
        yield piece
        if advance is not None:
            advance(len(piece))


class _Doubtful:
    """A file that begins like one of another kind: if it cannot be read, that is why."""

    def __init__(self, reader: TableReader, kind: str) -> None:
        self.source = reader.source
        self.header: Sequence[str] = reader.header
        self._reader, self._kind = reader, kind

    def blocks(self, roles: Mapping[str, Role]) -> Iterator[Block]:
        """The blocks of the reader."""
        try:
            yield from self._reader.blocks(roles)
        except DataError as error:
            raise _no_table(error, self.source, self._kind) from None


def _no_table(error: DataError, source: str, kind: str) -> DataError:
    return DataError(f"{source}: this is {kind}, not a table; save it as CSV", code=error.code)
