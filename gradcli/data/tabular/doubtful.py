"""A table whose file begins like one of another kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gradcli.data.tabular.reader import Role, RowLocation, TableBlock, TableReader
from gradcli.errors import DataError


class DoubtfulTable:
    """If the table cannot be read, or lacks the columns, the other kind is why."""

    def __init__(self, reader: TableReader, kind: str) -> None:
        self.source = reader.source
        self.header: Sequence[str] = reader.header
        self._reader, self._kind = reader, kind

    def blocks(self, roles: Mapping[str, Role]) -> Iterator[TableBlock]:
        """The blocks of the reader."""
        try:
            yield from self._reader.blocks(roles)
        except DataError as error:
            raise self.reject(error) from None

    def locate(self, number: int) -> RowLocation:
        """As the reader says."""
        return self._reader.locate(number)

    def reject(self, error: DataError) -> DataError:
        """What to say in place of an error."""
        return no_table(error, self.source, self._kind)


def no_table(error: DataError, source: str, kind: str) -> DataError:
    """An error that names the kind of the file."""
    return DataError(f"{source}: this is {kind}, not a table; save it as CSV", code=error.code)
