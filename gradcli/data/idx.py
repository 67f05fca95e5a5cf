"""The IDX format: a magic number, the sizes of the dimensions, then big-endian numbers.

Bytes 0 and 1 are zero, byte 2 is the type of the numbers, byte 3 the count of dimensions; each
size is a big-endian uint32. Nothing is allocated before the sizes are known to match the file.
"""

from __future__ import annotations

import math
import sys
from array import array
from pathlib import Path

from gradcli.data.background import Background
from gradcli.data.files import Loaded, load, path_text, read
from gradcli.data.inflate import RATIO, inflate, is_gzip, peek, refuse_bomb
from gradcli.dataclass import dataclass
from gradcli.errors import DataError
from gradcli.wording import quantity

TYPES = {
    0x08: "uint8",
    0x09: "int8",
    0x0B: "int16",
    0x0C: "int32",
    0x0D: "float32",
    0x0E: "float64",
}
_CODES = {"uint8": "B", "int8": "b", "int16": "h", "int32": "i", "float32": "f", "float64": "d"}
_MAX_DIMS = 8
_MAX_BYTES = 4 << 30
_LONGEST_HEADER = 4 + 4 * 255


@dataclass(frozen=True)
class IdxHeader:
    """What the first bytes of an IDX file say.

    Attributes:
        dtype: one of the names in TYPES.
        shape: size of each dimension; the first counts the samples.
        length: bytes of the header itself.
    """

    dtype: str
    shape: tuple[int, ...]
    length: int

    @property
    def item(self) -> int:
        """Bytes of one number."""
        return array(_CODES[self.dtype]).itemsize

    @property
    def total(self) -> int:
        """Bytes of the whole file."""
        return self.length + math.prod(self.shape) * self.item

    def __str__(self) -> str:
        return f"{self.dtype} {' x '.join(map(str, self.shape))}"


@dataclass(frozen=True)
class Idx:
    """A parsed file: its header and the numbers in this machine's byte order."""

    header: IdxHeader
    numbers: memoryview | array[int] | array[float]


def parse_header(start: bytes, source: str, most: int | None = _MAX_BYTES) -> IdxHeader:
    """The header at the beginning of `start`, which may hold more; `source` names the file.

    One that promises more than `most` bytes is refused: they would be read into memory.
    """
    dump = start[:16].hex(" ") or "nothing"
    if len(start) < 4:
        _refuse(source, f"an IDX header has at least 4 bytes, the file has {len(start)}: {dump}")
    if start[:2] != b"\0\0":
        _refuse(source, f"not an IDX file: it must begin with 00 00, found {dump}")
    if start[2] not in TYPES:
        names = ", ".join(f"{code:02x} {name}" for code, name in TYPES.items())
        _refuse(source, f"unknown IDX type {start[2]:02x} (known: {names}) in header {dump}")
    count = start[3]
    if not 1 <= count <= _MAX_DIMS:
        _refuse(
            source,
            f"IDX header {dump} has {quantity(count, 'dimension')}; 1 to {_MAX_DIMS} are read",
        )
    length = 4 + 4 * count
    if len(start) < length:
        _refuse(
            source,
            f"IDX header of {quantity(length, 'byte')} is cut off at byte {len(start)}: {dump}",
        )
    shape = tuple(int.from_bytes(start[at : at + 4], "big") for at in range(4, length, 4))
    header = IdxHeader(TYPES[start[2]], shape, length)
    if most is not None and header.total > most:
        what = f"IDX header {dump} promises {header}, {quantity(header.total, 'byte')}"
        _refuse(source, f"{what}; at most {most} are read")
    return header


def parse(data: bytes, source: str) -> Idx:
    """A whole IDX file, plain or gzipped."""
    content: bytes | bytearray = data
    if is_gzip(data):
        header = parse_header(peek(data, _LONGEST_HEADER, source), source)
        # A header cannot make us allocate more than the packed bytes can hold.
        if header.total > len(data) * RATIO + _LONGEST_HEADER:
            what = f"header promises {header}, {quantity(header.total, 'byte')}"
            _refuse(source, f"{what}; {quantity(len(data), 'byte')} of gzip cannot hold that")
        refuse_bomb(len(data), header.total, source)
        content = inflate(data, header.total, source)
    else:
        header = parse_header(data[:_LONGEST_HEADER], source)
    if len(content) != header.total:
        what = f"expected {quantity(header.total, 'byte')} from the header ({header})"
        _refuse(source, f"{what}, got {len(content)}")
    return Idx(header, numbers_of(memoryview(content)[header.length :], header))


def numbers_of(payload: memoryview, header: IdxHeader) -> memoryview | array[int] | array[float]:
    """Some of the numbers behind a header, in this machine's byte order."""
    if header.dtype == "uint8":
        return payload
    numbers = array(_CODES[header.dtype], payload.tobytes())
    if header.item > 1 and sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def read_header(path: Path) -> IdxHeader:
    """Only the header of a file; a plain file's length is compared with it."""
    source = path_text(path)
    start = read(path, 64 << 10)
    if is_gzip(start):
        return parse_header(peek(start, _LONGEST_HEADER, source), source, most=None)
    header = parse_header(start[:_LONGEST_HEADER], source, most=None)
    size = path.stat().st_size
    if size != header.total:
        what = f"expected {quantity(header.total, 'byte')} from the header ({header})"
        _refuse(source, f"{what}, got {size}")
    return header


_ahead: dict[Path, Background[tuple[Idx, Loaded]]] = {}


def read_ahead(path: Path) -> None:
    """Begin to read a file that `read_idx` will probably be asked for, in a thread."""
    _ahead[path] = Background(lambda: _read(path))


def forget() -> None:
    """Keep nothing of what was read ahead and not asked for."""
    _ahead.clear()


def read_idx(path: Path) -> tuple[Idx, Loaded]:
    """A file parsed, and the file as it was loaded."""
    early = _ahead.pop(path, None)
    return _read(path) if early is None else early.result()


def _read(path: Path) -> tuple[Idx, Loaded]:
    loaded = load(path)
    return parse(loaded.data, path_text(path)), loaded


def _refuse(source: str, what: str) -> None:
    raise DataError(f"{source}: {what}", code="E302")
