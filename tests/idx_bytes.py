"""IDX files made by hand, for the tests of the data package."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path


def idx_bytes(shape: tuple[int, ...], payload: bytes = b"", kind: int = 0x08) -> bytes:
    """A header of this shape and type, then the payload."""
    return bytes([0, 0, kind, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + payload


def images(count: int = 4, side: int = 2) -> bytes:
    return idx_bytes((count, side, side), bytes(i % 256 for i in range(count * side * side)))


def labels(values: tuple[int, ...] = (0, 1, 2, 1)) -> bytes:
    return idx_bytes((len(values),), bytes(values))


def write(folder: Path, **files: bytes) -> dict[str, str]:
    """Files named by keyword; their absolute paths."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return {name: str(folder / name) for name in files}


def packed(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)
