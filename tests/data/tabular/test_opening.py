"""Which reader opens a file: by its first bytes, and with a cure where a library is missing."""

from __future__ import annotations

import gzip
import queue
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gradcli.data.files import load
from gradcli.data.tabular import opening, pieces
from gradcli.data.tabular.opening import open_table
from gradcli.data.tabular.reader import Role, TableReader
from gradcli.errors import DataError

CSV = b"n,w\n1,a\n2.5,b\n"
LINES = b'{"n": 1, "w": "a"}\n{"n": 2.5, "w": "b"}\n'
NAMES = ("t.csv", "t.parquet", "t")
ROLES: dict[str, Role] = {"n": "number", "w": "word"}


def packed(data: bytes, codec: str) -> bytes:
    pa = pytest.importorskip("pyarrow", reason="needs the extra 'tables'")
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return bytes(sink.getvalue())


def columnar(name: str) -> bytes:
    pa = pytest.importorskip("pyarrow", reason="needs the extra 'tables'")
    sink, table = pa.BufferOutputStream(), pa.table({"n": [1, 2.5], "w": ["a", "b"]})
    if name == "feather":
        from pyarrow import feather

        feather.write_feather(table, sink)
    else:
        from pyarrow import parquet

        parquet.write_table(table, sink)
    return bytes(sink.getvalue())


CONTENTS: dict[str, Callable[[], bytes]] = {
    "csv": lambda: CSV,
    "csv with a mark": lambda: b"\xef\xbb\xbf" + CSV,
    "csv.gz": lambda: gzip.compress(CSV),
    "csv.zst": lambda: packed(CSV, "zstd"),
    "jsonl": lambda: LINES,
    "jsonl with a mark": lambda: b"\xef\xbb\xbf \n"[:4] + LINES,
    "jsonl.gz": lambda: gzip.compress(LINES),
    "jsonl.zst": lambda: packed(LINES, "zstd"),
    "parquet": lambda: columnar("parquet"),
    "feather": lambda: columnar("feather"),
}


def content(reader: TableReader) -> Any:
    (block,) = reader.blocks(ROLES)
    words = block.words["w"]
    return list(block.numbers["n"].values), [words.table[code] for code in words.codes]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", CONTENTS)
def test_a_file_is_known_by_its_content_under_any_name(
    form: str, name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(CONTENTS[form]())
    for file in (path, load(path)):
        assert content(open_table(file, ",")) == ([1.0, 2.5], ["a", "b"])


def refusal(data: bytes, tmp_path: Path) -> str:
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        open_table(path, ",")
    return caught.value.message.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"PAR1" + bytes(20), "this is a Parquet file"),
        (b"ARROW1\0\0" + bytes(20), "this is an Arrow file"),
        (pieces.ZSTD + bytes(20), "it is packed with zstd"),
    ],
)
def test_without_pyarrow_a_file_that_needs_it_names_the_extra(
    data: bytes, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (opening, pieces):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    message = refusal(data, tmp_path)
    assert message.startswith(what)
    assert message.endswith(
        "through pyarrow, which is not installed: pip install 'gradcli[tables]'"
    )


def test_without_pyarrow_csv_and_json_lines_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (opening, pieces):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    for data in (CSV, gzip.compress(CSV), LINES, gzip.compress(LINES)):
        path = tmp_path / "t"
        path.write_bytes(data)
        assert content(open_table(path, ",")) == ([1.0, 2.5], ["a", "b"])


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"FEA1" + bytes(20), "this is a Feather file of version 1; save it as version 2"),
        (b"\xff\xff\xff\xff" + bytes(20), "this is an Arrow stream; save it as an Arrow file"),
        (gzip.compress(b"PAR1" + bytes(20), mtime=0), "this is a Parquet file, packed once more"),
        (b'[{"n": 1}]', "this is a JSON array, not a table; write one object per line"),
        (b"\x89PNG\r\n\x1a\n\0\0", "this is a PNG picture, not a table; save it as CSV"),
    ],
)
def test_what_is_not_read_is_named(data: bytes, what: str, tmp_path: Path) -> None:
    assert refusal(data, tmp_path).startswith(what)


def test_pyarrow_reads_large_csv_files_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(CSV)
    expected = "ArrowCsvReader" if find_spec("pyarrow") else "CsvReader"
    assert type(open_table(path, ",")).__name__ == expected
    assert type(open_table(load(path), ",")).__name__ == "CsvReader"


@pytest.mark.parametrize(
    ("start", "installed", "module"),
    [
        (b"a,b\n1,2\n", True, "gradcli.data.arrow.csv_reader"),
        (b"PAR1", True, "gradcli.data.arrow.files"),
        (b'\xef\xbb\xbf {"a": 1}\n', True, None),
        (b"a,b\n1,2\n", False, None),
    ],
)
def test_a_reader_is_imported_once_its_file_is_hashed(
    start: bytes,
    installed: bool,
    module: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, imported = tmp_path / "table", queue.SimpleQueue[str]()
    path.write_bytes(start)
    monkeypatch.setattr(opening, "find_spec", lambda name: object() if installed else None)
    monkeypatch.setattr(opening, "import_module", imported.put)
    advance = opening.reader_ahead(path)
    for _ in range(3):
        advance(8)
    if module is not None:
        assert imported.get(timeout=10) == module
    assert imported.empty()


def test_zstd_that_is_cut_off_or_a_bomb_is_refused(tmp_path: Path) -> None:
    assert refusal(packed(CSV, "zstd")[:-3], tmp_path).startswith("zstd data is damaged: ")
    path = tmp_path / "t.csv"
    path.write_bytes(packed(b"n,w\n" + b"1,a\n" * (1 << 21), "zstd"))
    with pytest.raises(DataError, match="unpack to more than 4 MiB"):
        list(open_table(path, ",").blocks(ROLES))
