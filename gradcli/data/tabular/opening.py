"""Which reader reads a file: the one place that knows formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from gradcli.data.background import Background
from gradcli.data.files import Loaded, path_text, read
from gradcli.data.foreign import kind_of_text
from gradcli.data.inflate import is_gzip
from gradcli.data.tabular.csv_reader import CsvReader
from gradcli.data.tabular.doubtful import DoubtfulTable, no_table
from gradcli.data.tabular.json_reader import ONE_LINE_EACH, JsonLinesReader
from gradcli.data.tabular.pieces import BOM, ZSTD, pieces_in, pieces_of, texts
from gradcli.data.tabular.reader import TableReader
from gradcli.errors import DataError

Advance = Callable[[int], object]


# Files that hold columns in bytes of their own: pyarrow reads those that have a name here.
_BINARY: tuple[tuple[bytes, Literal["Parquet", "Arrow"] | None, str], ...] = (
    (b"PAR1", "Parquet", "a Parquet file"),
    (b"ARROW1", "Arrow", "an Arrow file"),
    (b"FEA1", None, "a Feather file of version 1; save it as version 2, as pandas does"),
    (b"\xff\xff\xff\xff", None, "an Arrow stream; save it as an Arrow file"),
)
EXTRA = "which is not installed: pip install 'gradcli[tables]'"


def open_table(file: Path | Loaded, delimiter: str, advance: Advance | None = None) -> TableReader:
    """A reader at the first row of a table in a file, or of one that is in memory.

    Its first bytes say what it is, whatever it is called. Large CSV files are read by pyarrow where
    that is installed: with the same result, but for small ones importing it would take longer.
    The unpacked bytes are reported to `advance` as they are read.
    """
    path = file if isinstance(file, Path) else file.path
    source = path_text(path)
    raw = read(path, 8) if isinstance(file, Path) else file.data[:8]
    binary = next((row for row in _BINARY if raw.startswith(row[0])), None)
    if binary is not None:
        return _open_binary(file, source, *binary[1:], advance)
    pieces = pieces_of(file) if isinstance(file, Path) else pieces_in(file)
    start = next(pieces, b"")
    kind = kind_of_text(start[:64])
    text = _report_progress(start, pieces, advance)
    first = start[:4096].removeprefix(BOM).lstrip()
    if first.startswith(b"{"):
        return JsonLinesReader(texts(text, source), source)
    inside = next((row[2] for row in _BINARY if start.startswith(row[0])), "")
    if inside:
        what = f"this is {inside}, packed once more; name the unpacked file"
        raise DataError(f"{source}: {what}", code="E304")
    if first.startswith(b"[") and first[1:].lstrip().startswith(b"{"):
        what = f"this is a JSON array, not a table; {ONE_LINE_EACH}"
        raise DataError(f"{source}: {what}", code="E304")
    try:
        reader = _of_csv(file, text, source, delimiter)
        return reader if kind is None else DoubtfulTable(reader, kind)
    except DataError as error:
        if kind is None:
            raise
        raise no_table(error, source, kind) from None


def reader_ahead(path: Path) -> Advance:
    """A callback that imports the reader in a thread once the first bytes of a file are hashed.

    A wrong guess of the reader costs time and changes no result.
    """
    started: list[Background[None]] = []

    def advance(_: int) -> None:
        if not started:
            started.append(Background(partial(_import_reader, read(path, 4096))))

    return advance


def _import_reader(start: bytes) -> None:
    if find_spec("pyarrow") is None or start.removeprefix(BOM).lstrip().startswith(b"{"):
        return
    binary = any(start.startswith(row[0]) for row in _BINARY)
    import_module(f"gradcli.data.arrow.{'files' if binary else 'csv_reader'}")


def is_packed(start: bytes) -> bool:
    """Whether the bytes of a file that begins so are not the text of a table."""
    return is_gzip(start) or start.startswith((ZSTD, *(row[0] for row in _BINARY)))


def _of_csv(
    file: Path | Loaded, pieces: Iterator[bytes], source: str, delimiter: str
) -> TableReader:
    if isinstance(file, Loaded) or find_spec("pyarrow") is None:
        return CsvReader(texts(pieces, source), source, delimiter)
    from gradcli.data.arrow.csv_reader import ArrowCsvReader

    return ArrowCsvReader(pieces, partial(pieces_of, file), source, delimiter)


def _open_binary(
    file: Path | Loaded,
    source: str,
    kind: Literal["Parquet", "Arrow"] | None,
    what: str,
    advance: Advance | None,
) -> TableReader:
    if kind is None:
        raise DataError(f"{source}: this is {what}", code="E304")
    if find_spec("pyarrow") is None:
        what = f"this is {what}, which gradcli reads through pyarrow, {EXTRA}"
        raise DataError(f"{source}: {what}", code="E304")
    from gradcli.data.arrow.files import open_columns

    return open_columns(file, kind, source, advance)


def _report_progress(
    start: bytes, rest: Iterator[bytes], advance: Advance | None
) -> Iterator[bytes]:
    yield start
    if advance is not None:
        advance(len(start))
    for piece in rest:
        yield piece
        if advance is not None:
            advance(len(piece))
