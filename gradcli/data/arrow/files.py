"""Parquet and Arrow files: batches of rows, checked before anything looks into them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyarrow import ipc, parquet

from gradcli.data.arrow.columns import OpenColumns, has_texts, numbers_in
from gradcli.data.files import Loaded, open_regular, path_text, regular_size
from gradcli.data.inflate import BOMB_RATIO
from gradcli.data.tabular.reader import Role, TableBlock, WithoutHeaderRow
from gradcli.errors import DataError
from gradcli.wording import quantity

Kind = Literal["Parquet", "Arrow"]
_ROWS = 1 << 16  # of a batch
_TRUSTED = 1 << 22  # rows, however tightly they are packed
_BUFFER = 1 << 20  # bytes of a column that are read ahead
# What a column may hold instead of numbers and words.
_HOLDS: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (pa.types.is_nested, "lists or structs"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_large_binary, "bytes"),
    (pa.types.is_fixed_size_binary, "bytes"),
    (pa.types.is_duration, "durations"),
)


def open_columns(
    file: Path | Loaded, kind: Kind, source: str, advance: Callable[[int], object] | None = None
) -> ArrowFileReader:
    """A reader of a file; it reports the bytes of the columns to `advance` as it reads them."""
    if isinstance(file, Loaded):
        return ArrowFileReader(pa.BufferReader(file.data), len(file.data), kind, source, advance)
    size = regular_size(file)
    handle = open_regular(file)
    try:
        reader = ArrowFileReader(pa.PythonFile(handle, "r"), size, kind, source, advance)
    except BaseException:
        handle.close()
        raise
    weakref.finalize(reader, handle.close)
    return reader


class ArrowFileReader(WithoutHeaderRow):
    """The rows of a Parquet or Arrow file of `size` bytes, which is open for pyarrow."""

    def __init__(
        self,
        file: Any,
        size: int,
        kind: Kind,
        source: str,
        advance: Callable[[int], object] | None = None,
    ) -> None:
        self.source = source
        self._advance = advance
        self._size, self._kind = size, kind
        with self._translate_errors():
            self._file = _ParquetFile(file) if kind == "Parquet" else _ArrowFile(file)
            self._types = list(self._file.schema.types)
            self.header: Sequence[str] = list(self._file.schema.names)

    def blocks(self, roles: Mapping[str, Role]) -> Iterator[TableBlock]:
        """The columns of `roles`, as the protocol says."""
        kinds = {name: self._types[self.header.index(name)] for name in roles}
        for name, kind in kinds.items():
            if roles[name] != "any" and not has_texts(kind):
                self._refuse(name, kind)
        text_roles = {name: role for name, role in roles.items() if has_texts(kinds[name])}
        columns = OpenColumns(text_roles)
        batches = self._batches(list(text_roles))
        while True:
            with self._translate_errors():
                batch = next(batches, None)
                if batch is None:
                    return
                block = _block(batch, columns)
            yield block

    def _batches(self, names: list[str]) -> Iterator[Any]:
        total = 0
        for batch in self._file.batches(names):
            total += batch.num_rows
            if total > max(_TRUSTED, BOMB_RATIO * self._size):
                size = quantity(self._size, "byte")
                what = (
                    f"{size} hold more than {BOMB_RATIO} rows each; no data are packed so tightly"
                )
                raise DataError(f"{self.source}: {what}", code="E302")
            if self._advance is not None:
                self._advance(batch.nbytes)
            batch.validate(full=True)  # in a damaged file, offsets and text are anything
            for begin in range(0, batch.num_rows, _ROWS):
                yield batch.slice(begin, _ROWS)

    def _refuse(self, name: str, kind: Any) -> None:
        holds = next((holds for test, holds in _HOLDS if test(kind)), "values")
        column = f"column {self.header.index(name) + 1} ({path_text(name)})"
        raise DataError(
            f"{self.source}: {column} holds {holds} ({path_text(str(kind))[:80]}); expected "
            "numbers or words: leave the column out, or write it as such",
            code="E304",
        )

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise a DataError in place of whatever pyarrow raises."""
        try:
            yield
        except MemoryError:
            what = f"too little memory for this {self._kind} file"
            raise DataError(f"{self.source}: {what}", code="E302") from None
        except (pa.ArrowException, OSError, ValueError, KeyError, IndexError) as error:
            reason = path_text(str(error).partition("\n")[0])[:200]
            what = f"not a whole {self._kind} file: {reason}"
            raise DataError(f"{self.source}: {what}", code="E302") from None


def _block(batch: Any, columns: OpenColumns) -> TableBlock:
    numbers = {name: numbers_in(batch.column(name)) for name in columns.numeric}
    cells = {name: batch.column(name) for name in columns.worded}
    return TableBlock(batch.num_rows, columns.numbers(numbers), columns.words(cells))


class _ParquetFile:
    def __init__(self, file: Any) -> None:
        self._file = parquet.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
        self.schema = self._file.schema_arrow

    def batches(self, names: list[str]) -> Iterator[Any]:
        yield from self._file.iter_batches(batch_size=_ROWS, columns=names)


class _ArrowFile:
    def __init__(self, file: Any) -> None:
        self._file = file
        self.schema = ipc.open_file(file).schema

    def batches(self, names: list[str]) -> Iterator[Any]:
        indices = [self.schema.names.index(name) for name in names]
        file = ipc.open_file(self._file, options=ipc.IpcReadOptions(included_fields=indices))
        for number in range(file.num_record_batches):
            yield file.get_batch(number)
