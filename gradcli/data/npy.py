"""NumPy's formats without NumPy and without pickle: .npy files, and .npz archives of them.

An .npy file is a magic number, the length of a header, the header (a dict of three entries, written
as Python, which is matched here and never evaluated), then the numbers.
"""

from __future__ import annotations

import io
import math
import re
import struct
import sys
import zipfile
import zlib
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from gradcli.data.inflate import RATIO, refuse_bomb
from gradcli.dataclass import dataclass
from gradcli.errors import DataError
from gradcli.wording import quantity

MAGIC = b"\x93NUMPY"
ZIP = b"PK\x03\x04"
LONGEST = 10_000  # bytes of a header; what NumPy itself reads without being asked twice
_MAX_DIMS = 8
_MAX_BYTES = 4 << 30
ROWS = 1 << 20  # bytes of rows that are unpacked at once
TEXT = ("U", "S", "a", "T")  # codes of text in NumPy
# The code of a type in the header -> its name, and its code for array.
TYPES = {
    "b1": ("bool", "B"),
    "i1": ("int8", "b"),
    "i2": ("int16", "h"),
    "i4": ("int32", "i"),
    "i8": ("int64", "q"),
    "u1": ("uint8", "B"),
    "u2": ("uint16", "H"),
    "u4": ("uint32", "I"),
    "u8": ("uint64", "Q"),
    "f2": ("float16", "H"),
    "f4": ("float32", "f"),
    "f8": ("float64", "d"),
}
_SPACE = " \t\n\r\f"  # what stands between parts of Python; `\s` and str.strip() take more
_ENTRY = re.compile(
    rf"""[{_SPACE}]*(?P<q>['"])(?P<key>\w{{1,20}})(?P=q)[{_SPACE}]*:[{_SPACE}]*
    (?:(?P<t>['"])(?P<text>[^'"\\]{{0,100}})(?P=t)
     |(?P<truth>True|False)
     |\((?P<sizes>[0-9,{_SPACE}]{{0,400}})\)
     |(?P<fields>\[[^\]]{{0,8000}}\]))[{_SPACE}]*(?:,|(?=\}}))""",
    re.VERBOSE | re.ASCII,
)
_INDENT = re.compile(r"[\n\r][ \t\f]+\Z")
_SIZE = rf"[{_SPACE}]*(?:0|[1-9][0-9]{{0,18}})[{_SPACE}]*"
_SIZES = re.compile(rf"[{_SPACE}]*|(?:{_SIZE},)+(?:{_SIZE})?[{_SPACE}]*")  # (3) is no tuple


@dataclass(frozen=True)
class NpyHeader:
    """What stands before the numbers.

    Attributes:
        type: one of the keys of TYPES.
        swapped: the numbers are in the other byte order.
        fortran: the first dimension runs fastest.
        length: bytes up to the numbers.
    """

    type: str
    swapped: bool
    fortran: bool
    shape: tuple[int, ...]
    length: int

    @property
    def dtype(self) -> str:
        """The name of the type."""
        return TYPES[self.type][0]

    @property
    def total(self) -> int:
        """Bytes of the whole file."""
        return self.length + math.prod(self.shape) * int(self.type[1])

    def __str__(self) -> str:
        return f"{self.dtype} {' x '.join(map(str, self.shape)) or 'scalar'}"


@dataclass(frozen=True)
class Npy:
    """A parsed file: its header and the numbers as they lie there, in this machine's byte order."""

    header: NpyHeader
    numbers: memoryview | array[Any]


def parse_header(start: bytes, source: str, most: int | None = _MAX_BYTES) -> NpyHeader:
    """The header at the beginning of `start`, which may hold more; `source` names the file.

    One that promises more than `most` bytes is refused: they would be read into memory.
    """
    if start[:6] != MAGIC:
        _refuse(
            source,
            f"not an .npy file: it must begin with 93 4e 55 4d 50 59 (\\x93NUMPY), "
            f"found {start[:6].hex(' ') or 'nothing'}",
        )
    version, width = start[6:8], 2 if start[6:7] == b"\1" else 4
    if version not in (b"\1\0", b"\2\0", b"\3\0") or len(start) < 8 + width:
        _refuse(source, f"version {version.hex(' ') or 'none'} of .npy; 1.0, 2.0 and 3.0 are read")
    length = int.from_bytes(start[8 : 8 + width], "little")
    begin = 8 + width
    if length > LONGEST or len(start) < begin + length:
        _refuse(
            source, f"its header of {quantity(length, 'byte')} is cut off or longer than {LONGEST}"
        )
    entries = _entries(start[begin : begin + length].decode("latin-1"), source)
    if set(entries) != {"descr", "fortran_order", "shape"}:
        _refuse(
            source,
            f"its header has the entries {sorted(entries)}, "
            "expected descr, fortran_order and shape",
        )
    kind, swapped = _type(entries["descr"], source)
    header = NpyHeader(
        kind,
        swapped,
        _truth(entries["fortran_order"], source),
        _shape(entries["shape"], source),
        begin + length,
    )
    if most is not None and header.total > most:
        _refuse(
            source,
            f"header promises {header}, {quantity(header.total, 'byte')}; {most} are read",
        )
    return header


def _entries(text: str, source: str) -> dict[str, re.Match[str]]:
    """The entries of the dict, each as it was matched."""
    indented = _INDENT.search(text) is not None  # a line that Python would not read
    text = text.strip(_SPACE)
    entries: dict[str, re.Match[str]] = {}
    at = 1
    while text[:1] == "{" and (match := _ENTRY.match(text, at)):
        if match["key"] in entries:
            _refuse(source, f"its header has '{match['key']}' twice")
        if match["fields"]:
            _refuse(source, "it holds records of several fields; save one array of plain numbers")
        entries[match["key"]] = match
        at = match.end()
    if text[:1] != "{" or text[at:].strip(_SPACE) != "}" or indented:
        _refuse(source, f"its header is no dict of descr, fortran_order and shape: {text[:80]!r}")
    return entries


def _type(entry: re.Match[str], source: str) -> tuple[str, bool]:
    text = entry["text"] or ""
    order, kind = text[:1], text[1:]
    if kind.startswith("O"):
        _refuse(
            source,
            "it holds Python objects, which only pickle could read; save numbers, "
            "such as numpy.save(file, array.astype('float32')), or of texts their numbers, "
            "numpy.unique(array, return_inverse=True)[1]",
        )
    if kind not in TYPES or order not in "<>|=" or (order == "|" and kind[1] != "1"):
        if kind[:1] in TEXT:
            _refuse(
                source,
                "it holds texts; save their numbers, numpy.unique(array, return_inverse=True)[1]",
            )
        names = ", ".join(name for name, _ in TYPES.values())
        _refuse(source, f"its type is '{text}'; read are {names}")
    swapped_order = ">" if sys.byteorder == "little" else "<"
    return kind, order == swapped_order


def _truth(entry: re.Match[str], source: str) -> bool:
    if entry["truth"] is None:
        _refuse(source, "fortran_order in its header is not True or False")
    return entry["truth"] == "True"


def _shape(entry: re.Match[str], source: str) -> tuple[int, ...]:
    text = entry["sizes"]
    if text is None or not _SIZES.fullmatch(text):
        _refuse(source, "shape in its header is no tuple of whole numbers")
    sizes = tuple(int(size) for size in text.split(",") if size.strip())
    if len(sizes) > _MAX_DIMS:
        _refuse(source, f"it has {quantity(len(sizes), 'dimension')}; at most {_MAX_DIMS} are read")
    return sizes


def parse(data: bytes | memoryview, source: str) -> Npy:
    """A whole .npy file."""
    header = parse_header(bytes(data[: LONGEST + 12]), source)
    if len(data) != header.total:
        what = f"expected {quantity(header.total, 'byte')} from the header ({header})"
        _refuse(source, f"{what}, got {len(data)}")
    return Npy(header, numbers_of(header, memoryview(data)[header.length :], source))


def numbers_of(header: NpyHeader, payload: memoryview, source: str) -> memoryview | array[Any]:
    """Some of the numbers behind a header, as tensors are made of them."""
    if header.type in ("u1", "b1"):
        if header.type == "b1" and set(payload.tobytes()) - {0, 1}:
            _refuse(source, "a truth value is neither 0 nor 1")
        return payload
    numbers = array(TYPES[header.type][1], payload.tobytes())
    if header.swapped:
        numbers.byteswap()
    return _plain(header, numbers, source)


def _plain(header: NpyHeader, numbers: array[Any], source: str) -> array[Any]:
    """Numbers of a type that tensors are made of: half floats as floats, large whole ones int64."""
    if header.type == "f2":
        halves = struct.unpack("=65536e", array("H", range(1 << 16)).tobytes())
        return array("f", map(halves.__getitem__, numbers))
    if header.type in ("u4", "u8"):
        if numbers and max(numbers) >> 63:
            _refuse(source, f"its number {max(numbers)} is beyond int64")
        return array("q", numbers)
    return numbers


def peek(data: object, key: str, source: str) -> NpyHeader:
    """The header of one array of an archive, which is an open file or lies at a path."""
    with _archive(data, source) as archive:
        start = _member(archive, key, LONGEST + 12, source)
        return parse_header(start, f"{source}, {key}", most=None)


def names(data: object, source: str) -> list[str]:
    """The names of the arrays of an archive, which is an open file or lies at a path."""
    with _archive(data, source) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def unpack(data: bytes, key: str, source: str) -> Npy:
    """One array of an archive."""
    with _archive(io.BytesIO(data), source) as archive:
        start = _member(archive, key, LONGEST + 12, source)
        header = parse_header(start, f"{source}, {key}")
        _check_packed(len(data), header, key, source)
        return parse(_member(archive, key, header.total + 1, source), f"{source}, {key}")


def _check_packed(size: int, header: NpyHeader, key: str, source: str) -> None:
    if header.total > size * RATIO + LONGEST:
        _refuse(
            source, f"{quantity(size, 'packed byte')} cannot hold the {header.total} of '{key}'"
        )
    refuse_bomb(size, header.total, f"{source}, {key}")


def unpack_rows(path: Path, key: str, source: str) -> Iterator[Npy]:
    """One array of an archive of any size, in C order, some rows at a time."""
    with _archive(path, source) as archive:
        header = parse_header(
            _member(archive, key, LONGEST + 12, source), f"{source}, {key}", most=None
        )
        _check_packed(path.stat().st_size, header, key, source)
        row = math.prod(header.shape[1:]) * int(header.type[1])
        most = max(1, ROWS // max(row, 1))
        with archive.open(_info(archive, key, source)) as member:
            member.read(header.length)
            for begin in range(0, header.shape[0], most):
                rows = min(most, header.shape[0] - begin)
                content = member.read(rows * row)
                if len(content) != rows * row:
                    _refuse(
                        f"{source}, {key}", f"it ends before the numbers of its header ({header})"
                    )
                numbers = numbers_of(header, memoryview(content), f"{source}, {key}")
                yield Npy(replace(header, shape=(rows, *header.shape[1:])), numbers)
            if member.read(1):
                _refuse(
                    f"{source}, {key}", f"it goes on behind the numbers of its header ({header})"
                )


def _member(archive: zipfile.ZipFile, key: str, count: int, source: str) -> bytes:
    """The first bytes of one array."""
    with archive.open(_info(archive, key, source)) as member:
        return member.read(count)


def _info(archive: zipfile.ZipFile, key: str, source: str) -> zipfile.ZipInfo:
    names = {name.removesuffix(".npy"): name for name in archive.namelist()}
    if key not in names:
        _refuse(source, f"it holds no array '{key}'; it has {', '.join(sorted(names)) or 'none'}")
    info = archive.getinfo(names[key])
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        _refuse(source, f"'{key}' is packed by method {info.compress_type}; 0 and 8 are read")
    return info


@contextmanager
def _archive(data: Any, source: str) -> Iterator[zipfile.ZipFile]:
    """The archive while it is open; what zipfile raises over damaged bytes becomes a DataError."""
    try:
        with zipfile.ZipFile(data) as archive:
            # zipfile passes over anything in front of an archive; NumPy does not.
            file: Any = archive.fp
            file.seek(0)
            if file.read(4) != ZIP:
                _refuse(source, "not an .npz archive: it does not begin with 50 4b 03 04 (PK)")
            yield archive
    except DataError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, struct.error) as error:
        _refuse(source, f"not a whole .npz archive: {error}")
    except (RuntimeError, NotImplementedError, OverflowError, UnicodeError) as error:
        _refuse(source, f"an archive that is not read: {error}")


def _refuse(source: str, what: str) -> NoReturn:
    raise DataError(f"{source}: {what}", code="E302")
