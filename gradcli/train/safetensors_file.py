"""The safetensors format, strictly: a header that is read in Python and never trusted.

A file is 8 bytes (header length, little-endian), a JSON object naming each tensor's dtype, shape
and byte range, then the bytes. The ranges must cover the rest of the file exactly, in any order.
"""

from __future__ import annotations

import json
import math
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from gradcli.data.files import path_text
from gradcli.data.foreign import kind_of
from gradcli.dataclass import dataclass
from gradcli.errors import CheckpointError
from gradcli.wording import quantity, verb

METADATA = "__metadata__"
MAX_HEADER = 100_000_000
MAX_DEPTH = 8
MAX_COUNT = 2**63 - 1

SIZES: dict[str, int] = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "F8_E5M2": 1,
    "F8_E4M3": 1,
    "I16": 2,
    "U16": 2,
    "F16": 2,
    "BF16": 2,
    "I32": 4,
    "U32": 4,
    "F32": 4,
    "F64": 8,
    "I64": 8,
    "U64": 8,
}


@dataclass(frozen=True)
class RawTensor:
    """One tensor as bytes: its dtype in safetensors' names, its shape and its data."""

    dtype: str
    shape: tuple[int, ...]
    data: memoryview | bytes

    @property
    def size(self) -> int:
        """Its bytes."""
        return math.prod(self.shape) * SIZES[self.dtype]


@dataclass(frozen=True)
class Contents:
    """A whole file: tensors by name, the metadata, and the header's bytes as they stand."""

    tensors: dict[str, RawTensor]
    metadata: dict[str, str]
    header: bytes


def encode_header(tensors: Mapping[str, RawTensor], metadata: Mapping[str, str]) -> bytes:
    """Length and JSON of the header; the bytes of the tensors follow in `layout` order."""
    header: dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
    offset = 0
    for name in layout(tensors):
        tensor = tensors[name]
        end = offset + tensor.size
        header[name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def layout(tensors: Mapping[str, RawTensor]) -> list[str]:
    """The order of the bytes: widest elements first, so that each tensor is aligned."""
    return sorted(tensors, key=lambda name: (-SIZES[tensors[name].dtype], name))


def read(path: Path) -> Contents:
    """All tensors of a regular file; it is not mapped, since one cut short would kill us."""
    name = path_text(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            _refuse(name, "not a regular file")
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise CheckpointError(f"cannot read {name}: {reason}") from None
    return decode(data, name)


def decode(data: bytes | memoryview, source: str) -> Contents:
    """All tensors of a file's bytes, without a copy; any fault is a CheckpointError."""
    view = memoryview(data)
    header_length = _header_length(view, source)
    header = bytes(view[8 : 8 + header_length])
    rows = _parse(header, source)
    metadata = _metadata(rows.pop(METADATA, {}), source)
    body = view[8 + header_length :]
    ranges: list[tuple[int, int, str]] = []
    tensors: dict[str, RawTensor] = {}
    for name, row in rows.items():
        dtype, shape, begin, end = _row(name, row, source)
        ranges.append((begin, end, name))
        tensors[name] = RawTensor(dtype, shape, body[begin:end])
    _covered(ranges, len(body), source)
    return Contents(tensors, metadata, bytes(view[: 8 + header_length]))


def _refuse(source: str, reason: str) -> NoReturn:
    raise CheckpointError(f"{source}: {reason}")


def _header_length(view: memoryview, source: str) -> int:
    """The first eight bytes, checked against the file and the limit."""
    length = int.from_bytes(view[:8], "little")
    problem = _start_problem(view, length)
    if problem:
        kind = kind_of(bytes(view[:64]))
        _refuse(source, f"this is {kind}; convert it to safetensors first" if kind else problem)
    return length


def _start_problem(view: memoryview, length: int) -> str | None:
    size = len(view)
    if size < 8:
        return f"the file has {quantity(size, 'byte')}, a safetensors file has at least 8"
    if size > 8 and view[8] != ord("{"):
        return "the header does not begin with '{': not a safetensors file"
    if length > MAX_HEADER:
        return f"the header claims {quantity(length, 'byte')}, the limit is {MAX_HEADER}"
    if length < 2 or length > size - 8:
        rest = f"{quantity(size - 8, 'byte')} {verb(size - 8, 'follows', 'follow')}"
        return f"the header claims {quantity(length, 'byte')}, {rest}"
    return None


def _parse(header: bytes, source: str) -> dict[str, Any]:
    """The header as an object; unlike json, raises for repeated names, NaN and great depth."""
    try:
        text = header.decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse(source, f"the header is not UTF-8 at byte {error.start}")
    if _too_deep(text):
        _refuse(source, f"the header is nested deeper than {MAX_DEPTH}")
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_int=_integer
        )
    except (ValueError, RecursionError) as error:
        _refuse(source, f"the header is not valid JSON: {error}")
    if not isinstance(value, dict):
        _refuse(source, "the header is not a JSON object")
    return value


def _object(items: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose names are different and can be written as UTF-8."""
    result: dict[str, Any] = {}
    for key, value in items:
        if key in result:
            raise ValueError(f"'{_format(key)}' occurs twice")
        if not is_utf8(key):
            raise ValueError("a name holds half a surrogate pair")
        result[key] = value
    return result


def _constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


def _integer(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError(f"an integer of {quantity(len(digits), 'digit')}")
    if digits == "-0":  # a fraction to other readers, and to JSON no whole number of bytes
        raise ValueError("-0 in place of 0")
    return int(digits)


# An unterminated string matches to the end, so that the search never starts again inside it.
STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
BRACKET = re.compile(r"[\[\]{}]")


def _too_deep(text: str) -> bool:
    """Whether brackets outside strings nest deeper than the limit, found without recursion."""
    depth = 0
    for bracket in BRACKET.finditer(STRING.sub("", text)):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False


def is_utf8(text: str) -> bool:
    """Whether a text can be written at all: half a surrogate pair cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _format(name: str) -> str:
    """A name for a message: control characters escaped, at most 80 characters."""
    return ascii(name)[1:-1][:80]


def _metadata(value: object, source: str) -> dict[str, str]:
    if not isinstance(value, dict):
        _refuse(source, f"{METADATA} is not an object")
    for key, text in value.items():
        if not isinstance(text, str) or not is_utf8(text):
            _refuse(source, f"{METADATA} '{_format(key)}' is not a string")
    return value


def _row(name: str, row: object, source: str) -> tuple[str, tuple[int, ...], int, int]:
    """dtype, shape, begin and end of one tensor, each checked and all of them together."""
    label = _format(name)
    if not isinstance(row, dict) or set(row) != {"dtype", "shape", "data_offsets"}:
        _refuse(source, f"tensor '{label}' needs exactly dtype, shape and data_offsets")
    dtype, shape, offsets = row["dtype"], row["shape"], row["data_offsets"]
    if not isinstance(dtype, str) or dtype not in SIZES:
        _refuse(source, f"tensor '{label}' has the unknown dtype {_format(str(dtype))}")
    if not _counts(shape):
        _refuse(source, f"the shape of tensor '{label}' is not a list of whole numbers from 0")
    if not _counts(offsets) or len(offsets) != 2:
        _refuse(source, f"the data_offsets of tensor '{label}' are not two whole numbers from 0")
    begin, end = offsets
    size = math.prod(shape) * SIZES[dtype]
    if size > MAX_COUNT:
        _refuse(source, f"tensor '{label}' would have {quantity(size, 'byte')}")
    if end < begin:
        _refuse(source, f"tensor '{label}' ends at {end}, before its begin {begin}")
    if size != end - begin:
        _refuse(
            source,
            f"tensor '{label}' {dtype}{shape} needs {quantity(size, 'byte')}, its range has "
            f"{end - begin}",
        )
    return dtype, tuple(shape), begin, end


def _counts(value: object) -> bool:
    """Whether `value` is a list of ints from 0 that fit in 64 bits; True and 1.0 are none."""
    return (
        isinstance(value, list)
        and len(value) <= 64
        and all(type(item) is int and 0 <= item <= MAX_COUNT for item in value)
    )


def _covered(ranges: list[tuple[int, int, str]], size: int, source: str) -> None:
    """Ranges laid end to end must fill the body: no hole, no overlap, nothing left."""
    position, last = 0, "the header"
    for begin, end, raw in sorted(ranges):
        name = _format(raw)
        if end > size:
            _refuse(
                source, f"tensor '{name}' ends at {end}, the file has {quantity(size, 'data byte')}"
            )
        if begin < position:
            _refuse(source, f"tensors '{last}' and '{name}' overlap at byte {begin}")
        if begin > position:
            hole = begin - position
            _refuse(
                source,
                f"{quantity(hole, 'byte')} between '{last}' and '{name}' "
                f"{verb(hole, 'belongs', 'belong')} to no tensor",
            )
        position, last = end, name
    if position != size:
        _refuse(
            source, f"the tensors end at {position}, the file has {quantity(size, 'data byte')}"
        )
