"""The readers of tables: each format by itself, and CSV by both readers, which must agree."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

from data_parsers import SPLIT, TABLE, Csv, packed
from parsing import OneFile, WrongAnswerError
from spoiling import CHARACTERS
from table_answers import answer

from gradcli.data.csv import CsvSource
from gradcli.data.files import Loaded
from gradcli.data.tabular.csv_reader import CsvReader
from gradcli.data.tabular.opening import open_table
from gradcli.data.tabular.pieces import pieces_of, texts
from gradcli.data.tabular.reader import Role, TableReader
from gradcli.errors import DataError

ROLES: dict[str, Role] = {"n": "number", "c": "word", "o": "any"}
LINES = b'{"n": 1.5, "c": "a"}\n{"n": -2e3, "c": "b \\"q\\""}\n{"n": null, "c": "\\u00e9"}\n' * 3
CSV = b"n,c,o\n" + b"".join(b"%d.5,%d,%d\n" % (i, i % 3, i) for i in range(20))


def on_one_thread(pyarrow: Any) -> None:
    """pyarrow without threads, whose stacks and heaps would count as memory that was asked for."""
    if pyarrow is not None:
        pyarrow.set_cpu_count(1)
        pyarrow.set_io_thread_count(1)


class Table(OneFile):
    """Tables of a format of their own: columns in every role, and samples."""

    COLUMNS: ClassVar[Sequence[str]] = ("n", "c")

    def parse(self, data: bytes) -> None:
        path = self.write(data)
        reader = partial(open_table, Loaded(Path(path), data, ""), ",")
        answers: list[Any] = []
        for role in ("number", "word", "any"):
            answers = [answer(reader, {name: role}) for name in self.COLUMNS]
        for task, missing in (("classification", "drop"), ("regression", "mean")):
            columns: dict[str, Any] = {"numeric": ("n",), "target": "c"}
            if task == "regression":
                columns = {"category": ("c",), "target": "n"}
            source = CsvSource(file=path, task=task, missing=missing, split=SPLIT, **columns)
            self.use(source, path)
        refused = next((one for one in answers if isinstance(one, str)), None)
        if refused is not None:
            raise DataError(refused)


class JsonLines(Table):
    """Objects, one a line."""

    PIECES = (
        *CHARACTERS, b"{", b"}", b"[", b"]", b":", b"null", b"NaN", b"1e999", b"\\ud800", b"\\",
        b"\\u0000", b'"n"', b"{}", b"[" * 3000, b"1" * 5000, b"\n\n", b"\xef\xbb\xbf", b"true",
    )  # fmt: skip

    def seeds(self) -> Sequence[bytes]:
        return [LINES, packed(LINES), b'{"c": "x", "n": "7"}\r\n{"n": 8, "c": "y", "z": [{}]}\r\n']


class Columnar(Table):
    """Files of pyarrow's; each type of column, packed in each way."""

    REFERENCE = "pyarrow"
    COLUMNS = ("n", "c", "i", "s", "b", "t", "l")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        on_one_thread(self.reference)

    def table(self) -> Any:
        """Some rows of every type."""
        pa, rows = self.reference, 30
        return pa.table(
            {
                "n": [None if i % 7 == 0 else i / 3 for i in range(rows)],
                "c": pa.array(["x", "y", None] * (rows // 3)).dictionary_encode(),
                "i": pa.array(range(rows), pa.int16()),
                "s": [f"word {i % 4}" for i in range(rows)],
                "b": [True, False] * (rows // 2),
                "t": pa.array(range(rows), pa.timestamp("ms")),
                "l": [[i, i] for i in range(rows)],
            }
        )


class Parquet(Columnar):
    """Parquet, by pyarrow."""

    PIECES = (*CHARACTERS, b"PAR1", b"\x15\x00", b"\x15\x02", b"\x19", b"\x1c", b"\x16", b"\x00")

    @cached_property
    def _seeds(self) -> list[bytes]:
        from pyarrow import parquet

        made = []
        plain = {"n": "BYTE_STREAM_SPLIT", "i": "DELTA_BINARY_PACKED", "s": "DELTA_BYTE_ARRAY"}
        ways: list[dict[str, Any]] = [
            *(
                {"compression": name}
                for name in ("none", "snappy", "gzip", "zstd", "lz4", "brotli")
            ),
            {"data_page_version": "2.0"},
            {"use_dictionary": False, "column_encoding": plain, "compression": "none"},
        ]
        for way in ways:
            sink = self.reference.BufferOutputStream()
            parquet.write_table(self.table(), sink, row_group_size=20, **way)
            made.append(bytes(sink.getvalue()))
        return made

    def seeds(self) -> Sequence[bytes]:
        return self._seeds


class Arrow(Columnar):
    """Arrow files, which are Feather of version 2, by pyarrow."""

    PIECES = (*CHARACTERS, b"ARROW1", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x10\0\0\0")

    @cached_property
    def _seeds(self) -> list[bytes]:
        from pyarrow import ipc

        made = []
        for compression in (None, "lz4", "zstd"):
            sink, table = self.reference.BufferOutputStream(), self.table()
            options = ipc.IpcWriteOptions(compression=compression)
            with ipc.new_file(sink, table.schema, options=options) as file:
                file.write_table(table, max_chunksize=20)
            made.append(bytes(sink.getvalue()))
        return made

    def seeds(self) -> Sequence[bytes]:
        return self._seeds


class BothReaders(OneFile):
    """CSV, plain or packed, through pyarrow: the numbers and sentences of the base reader."""

    REFERENCE = "pyarrow"
    PIECES = (*Csv.PIECES, b"inf", b"0x10", b" NA ", b'"\n"', b"\r\r", b"\xc2\x85")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        on_one_thread(self.reference)

    @cached_property
    def _seeds(self) -> list[bytes]:
        plain = [TABLE, CSV, CSV.replace(b"\n", b"\r\n")]
        return [*plain, packed(CSV), *map(self._zstd, plain)]

    def _zstd(self, data: bytes) -> bytes:
        sink = self.reference.BufferOutputStream()
        with self.reference.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(data)
        return bytes(sink.getvalue())

    def seeds(self) -> Sequence[bytes]:
        return self._seeds

    def spoil(self, data: bytes, rng: random.Random) -> bytes:
        plain = [TABLE, CSV, CSV.replace(b"\n", b"\r\n")]
        spoilt = super().spoil(rng.choice((data, *plain)), rng)
        return self._zstd(spoilt) if rng.random() < 0.1 else spoilt

    def parse(self, data: bytes) -> None:
        from gradcli.data.arrow.csv_reader import ArrowCsvReader

        again = partial(pieces_of, Path(self.write(data)))

        def base() -> TableReader:
            return CsvReader(texts(again(), "input"), "input")

        def by_arrow() -> TableReader:
            return ArrowCsvReader(again(), again, "input")

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ours = answer(base, ROLES)
            if answer(by_arrow, ROLES) != ours:
                raise WrongAnswerError(f"the base reader says {str(ours)[:300]}")
        if isinstance(ours, str):
            raise DataError(ours)
