"""The readers of data files, each against another one that reads the same format."""

from __future__ import annotations

import csv
import gzip
import io
import math
import random
import struct
import warnings
import zipfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from idx_bytes import idx_bytes
from parsing import OneFile, WrongAnswerError
from spoiling import CHARACTERS, spoil_bytes

from gradcli.data import cifar, idx, npy, sums
from gradcli.data.csv import CsvSource
from gradcli.data.csv_rows import parse_rows
from gradcli.data.files import Loaded, text_of
from gradcli.data.images import IdxSource, check_labels
from gradcli.data.npy_source import NpySource
from gradcli.data.npz_source import NpzSource
from gradcli.data.tabular.cells import number_of
from gradcli.data.text import TextSource, encode

TABLE = b'n,c\r\n1.5,a\r\n-2e3,"b ""q"", b"\r\nNA,a\r\n0,"two\nlines"\r\n7,a\r\n8,b\r\n'
TEXT = "Größe und Maß\nsecond line\n\U0001f600 third\n".encode()
SPLIT: dict[str, int | str] = {"train": "100%"}


def packed(data: bytes) -> bytes:
    return gzip.compress(data, 1, mtime=0)


class Packable(OneFile):
    """Files that may be gzipped: spoilt inside or outside of that."""

    def plain(self) -> Sequence[bytes]:
        """The seeds that are not gzipped."""
        raise NotImplementedError

    def seeds(self) -> Sequence[bytes]:
        return [*self.plain(), *map(packed, self.plain())]

    def spoil(self, data: bytes, rng: random.Random) -> bytes:
        way = rng.random()
        if way < 0.2:
            plain = super().spoil(rng.choice(self.plain()), rng)
            return packed(plain) + (packed(plain) if way < 0.05 else b"")
        return super().spoil(data, rng)

    def content(self, data: bytes) -> bytes:
        """What is in the gzip, as the data reader sees it."""
        return Loaded(Path("input"), data, "").unpacked()


class Csv(Packable):
    """Rows as the standard library has them, and whole tables."""

    PIECES = (
        *CHARACTERS, b'""', b"\r\n", b"\n\n", b";", b"\xef\xbb\xbf", b"NA", b"nan", b"1e999",
        b"1_0", b"\xd9\xa1", b"-", b".5e-3", b"n,c", b"$1,234.50", b"\xe2\x80\xa8", b"0x1",
    )  # fmt: skip

    def plain(self) -> Sequence[bytes]:
        return [TABLE, b"n,c\n" + b"".join(b"%d,%d\n" % (i, i % 3) for i in range(12))]

    def parse(self, data: bytes) -> None:
        content = self.content(data)
        rows = parse_rows(content, "input")
        if rows != rows_of_reference(content):
            raise WrongAnswerError("other rows than csv of the standard library")
        for cell in rows[-1] if rows else ():
            value = number_of(cell)
            if not math.isnan(value) and value != float(cell.strip()):
                raise WrongAnswerError(f"the number {value} of {cell!r}")
        for task, missing in (("classification", "drop"), ("regression", "mean")):
            columns = {"numeric": ("n",), "target": "c"}
            if task == "regression":
                columns = {"category": ("c",), "target": "n"}
            source = CsvSource(
                file=self.write(data), task=task, missing=missing, split=SPLIT, **columns
            )
            self.use(source, source.file)


def rows_of_reference(content: bytes) -> list[list[str]]:
    text = io.StringIO(content.decode("utf-8-sig"), newline="")
    try:
        rows = list(csv.reader(text, strict=True))
    except csv.Error as error:
        raise WrongAnswerError(f"csv of the standard library refuses it: {error}") from None
    return [row for row in rows if row not in ([], [""])]


class Idx(Packable):
    """Numbers as a few lines of struct have them."""

    def plain(self) -> Sequence[bytes]:
        return [
            idx_bytes((4, 2, 2), bytes(range(16))),
            idx_bytes((2, 3), struct.pack(">6h", *range(-3, 3)), 0x0B),
            idx_bytes((2, 2), struct.pack(">4f", 0, 1.5, -2, 1e30), 0x0D),
            idx_bytes((2,), struct.pack(">2d", 0, 1e300), 0x0E),
        ]

    def parse(self, data: bytes) -> None:
        found = idx.parse(data, "input")
        content = self.content(data)
        dimensions = content[3]
        shape = struct.unpack_from(f">{dimensions}I", content, 4)
        # Floats as whole numbers of their size: struct makes quiet NaNs of signalling ones.
        code = {8: "B", 9: "b", 11: "h", 12: "i", 13: "i", 14: "q"}[content[2]]
        numbers = struct.unpack_from(f">{math.prod(shape)}{code}", content, 4 + 4 * dimensions)
        if found.header.shape != shape or bytes(found.numbers) != struct.pack(
            f"={len(numbers)}{code}", *numbers
        ):
            raise WrongAnswerError("other numbers than struct")
        count = shape[0] if numbers else 0
        labels = self.write(idx_bytes((count,), bytes(count)), "labels")
        source = IdxSource(images=self.write(data), labels=labels, split=SPLIT)
        self.use(source, source.images)


class Cifar(Packable):
    """Labels and pictures, ten thousand a file in the real ones."""

    def plain(self) -> Sequence[bytes]:
        return [bytes(3073 * 2), bytes(3073 * 3).replace(b"\0" * 3073, b"\1" * 3073, 1)]

    def parse(self, data: bytes) -> None:
        content = self.content(data)
        labels, pixels = cifar.parse(content, 1, "input")
        check_labels(labels, 10, "input")
        if bytes(labels) != content[::3073] or len(pixels) != len(labels) * 3072:
            raise WrongAnswerError("other labels than every 3073rd byte")


class Text(Packable):
    """Characters as str has them, and bytes."""

    PIECES = (
        *CHARACTERS,
        b"\xef\xbb\xbf",
        b"\xf0\x9f\x98\x80",
        b"\xed\xa0\x80",
        b"\xc3",
        b"\xc0\x80",
    )

    def plain(self) -> Sequence[bytes]:
        return [TEXT, b"the cat sat on the mat\n" * 5]

    def parse(self, data: bytes) -> None:
        content = self.content(data)
        for unit in ("bytes", "characters"):
            source = TextSource(file=self.write(data), unit=unit, context=4, split=SPLIT)
            self.use(source, source.file)
        text = text_of(content, "input")
        labels = sorted(set(text))
        if text != content.decode("utf-8-sig"):
            raise WrongAnswerError("another text than that of str")
        if "".join(labels[place] for place in encode(text, labels, "input")) != text:
            raise WrongAnswerError("its tokens are another text")


class Npy(OneFile):
    """Arrays as NumPy reads them."""

    REFERENCE = "numpy"
    PIECES = (
        *CHARACTERS, b"'descr'", b"'shape'", b"'fortran_order'", b"True", b"False", b"(", b")",
        b"{", b"}", b"'<f4'", b"'>i8'", b"'|O'", b"'<U3'", b"'|b1'", b"'<f2'", b"()", b"(2,)",
        b"-1", b"0", b"1" * 20, b"1_0", b"\x1d", b"\xa0", b"[('a', '<f4')]", b"#", b"\\",
        b"'<M8[s]'", b"'<c8'",
    )  # fmt: skip

    @cached_property
    def _seeds(self) -> list[bytes]:
        return [
            npy_bytes(),
            npy_bytes("()", "<f2", 2),
            npy_bytes("(4,)", "|b1", 4),
            npy_bytes("(2, 1, 3)", "<f4", 24),
            npy_bytes("(3,)", "<u8", 24),
            npy_bytes("(0, 3)", "|u1", 0),
        ]

    def seeds(self) -> Sequence[bytes]:
        return self._seeds

    def spoil(self, data: bytes, rng: random.Random) -> bytes:
        if rng.random() < 0.5:
            return super().spoil(data, rng)
        begin = 10
        length = int.from_bytes(data[8:begin], "little")
        header = super().spoil(data[begin : begin + length].rstrip(), rng)
        return framed(header, data[begin + length :], rng.choice((b"\1\0", b"\2\0", b"\3\0")))

    def parse(self, data: bytes) -> None:
        found = npy.parse(data, "input")
        self.compare(found, data)
        count = found.header.shape[0] if found.header.shape else 1
        targets = self.write(npy_bytes(f"({count},)", "|u1", count), "targets")
        source = NpySource(inputs=self.write(data), targets=targets, split=SPLIT)
        self.use(source, source.inputs)

    def compare(self, found: npy.Npy, data: bytes) -> None:
        if self.reference is None:
            return
        same_numbers(found, self.theirs(data))

    def theirs(self, data: bytes) -> Any:
        """What NumPy reads."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Python 2's headers, which it reads
                return self.reference.load(io.BytesIO(data), allow_pickle=False)
        except Exception as error:
            raise WrongAnswerError(f"NumPy refuses it: {error}") from None


def same_numbers(found: npy.Npy, theirs: Any) -> None:
    """The same shape, and the same bytes where nothing is to be widened."""
    if found.header.shape != theirs.shape:
        raise WrongAnswerError(f"NumPy has the shape {theirs.shape}")
    wide = {"f2": "f4", "u4": "i8", "u8": "i8"}.get(found.header.type, found.header.type)
    expected = theirs.astype(f"={wide}").ravel("F" if found.header.fortran else "C").tolist()
    code = "?" if wide == "b1" else npy.TYPES[wide][1]
    ours = memoryview(bytes(found.numbers)).cast(code).tolist()
    # As texts, in which NaN is equal to NaN, and -0.0 is not 0.0.
    if list(map(repr, ours)) != list(map(repr, expected)):
        raise WrongAnswerError("other numbers than NumPy")


def framed(header: bytes, body: bytes, version: bytes = b"\1\0") -> bytes:
    """A header with its length in front, and what follows."""
    width = 2 if version == b"\1\0" else 4
    text = header + b" " * (63 - (8 + width + len(header)) % 64) + b"\n"
    return npy.MAGIC + version + len(text).to_bytes(width, "little") + text + body


def npy_bytes(shape: str = "(3, 2)", kind: str = ">i2", size: int = 12) -> bytes:
    header = f"{{'descr': '{kind}', 'fortran_order': True, 'shape': {shape}, }}"
    return framed(header.encode(), bytes(i % 2 for i in range(size)))


class Npz(Npy):
    """Archives: spoilt as a whole, or one of their arrays with right checksums around it."""

    PIECES = (*Npy.PIECES, b"PK\3\4", b"PK\1\2", b"PK\5\6", b"PK\6\6", b"x.npy", b"y.npy")

    @cached_property
    def _archives(self) -> list[bytes]:
        return [
            self.archive(npy_bytes(), zipfile.ZIP_STORED),
            self.archive(npy_bytes("(5, 8)", "<f8", 320), zipfile.ZIP_DEFLATED),
        ]

    def archive(self, data: bytes, method: int) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            for name in ("y.npy", "x.npy"):
                archive.writestr(zipfile.ZipInfo(name), data, method)
        return file.getvalue()

    def seeds(self) -> Sequence[bytes]:
        return self._archives

    def spoil(self, data: bytes, rng: random.Random) -> bytes:
        if rng.random() < 0.6:
            return spoil_bytes(data, rng, self.PIECES)
        inside = super().spoil(rng.choice(self._seeds), rng)
        methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
        return self.archive(inside, rng.choice(methods))

    def parse(self, data: bytes) -> None:
        found = npy.unpack(data, "x", "input")
        if npy.peek(io.BytesIO(data), "x", "input") != found.header:
            raise WrongAnswerError("another header at the first look")
        self.compare(found, data)
        source = NpzSource(file=self.write(data), inputs="x", targets="y", split=SPLIT)
        self.use(source, source.file)

    def theirs(self, data: bytes) -> Any:
        """What NumPy reads under the name that the source asks for."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.reference.load(io.BytesIO(data), allow_pickle=False)["x"]
        except Exception as error:
            raise WrongAnswerError(f"NumPy refuses it: {error}") from None


class Sums(OneFile):
    """SHA256SUMS beside data files, in each form that sha256sum writes."""

    PIECES = (
        *CHARACTERS,
        b" *",
        b"  ",
        b"\\",
        b"./",
        b"../",
        b"/",
        b"\t",
        b"SHA256 (",
        b") = ",
        b"#",
    )

    def seeds(self) -> Sequence[bytes]:
        lines = (b"%064x  %s\n" % (i, name) for i, name in enumerate((b"a.csv", b"files/b.csv")))
        return [b"".join(lines), b"%064X *x.npy\r\nSHA256 (y) = %064x\n" % (5, 10**50), b""]

    def parse(self, data: bytes) -> None:
        found = sums.parsed(data, self.folder, "input")
        if any(len(digest) != 64 or digest != digest.lower() for digest in found.files.values()):
            raise WrongAnswerError("no digest in lower case")
