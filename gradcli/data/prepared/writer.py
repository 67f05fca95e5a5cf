"""Writing the arrays of a set: `.npy` files of format 1.0, flushed, and each hashed."""

from __future__ import annotations

import contextlib
import errno
import math
import mmap
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradcli.data.files import path_text
from gradcli.data.prepared.identity import FileIdentity, hashed
from gradcli.data.prepared.progress import Progress
from gradcli.dataclass import dataclass
from gradcli.errors import RunError
from gradcli.wording import byte_size

if TYPE_CHECKING:
    from gradcli.engine import DType

# The element types of arrays, as NumPy writes them, with their sizes and codes for memoryview.
TYPES = {
    "float32": ("f4", 4, "f"),
    "float64": ("f8", 8, "d"),
    "int32": ("i4", 4, "i"),
    "int64": ("i8", 8, "q"),
    "uint8": ("u1", 1, "B"),
    "bool": ("b1", 1, "?"),
}
_ORDER = "<" if sys.byteorder == "little" else ">"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_BUFFER = 1 << 20
_BACK_DATED = 10  # seconds, so that the time of any later edit is another one
_ELSEWHERE = "keep prepared data elsewhere: data: {cache: DIR}"


def header(dtype: str, shape: Sequence[int]) -> bytes:
    """What stands before the numbers; its length does not depend on the first dimension."""
    inner = "".join(f"{size}, " for size in shape[1:])
    first = f"{shape[0]}, " if shape else ""
    letters, size, _ = TYPES[dtype]
    order = "|" if size == 1 else _ORDER
    text = f"{{'descr': '{order}{letters}', 'fortran_order': False, 'shape': ({first}{inner}), }}"
    longest = len(text) - len(first) + 24
    total = -(-(10 + longest + 1) // 64) * 64
    padded = text.ljust(total - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode("latin-1")


@dataclass(frozen=True)
class StoredArray:
    """The facts of an array of a set, as in facts.json."""

    dtype: str
    shape: tuple[int, ...]
    offset: int
    sha256: str
    identity: FileIdentity


class ArrayWriter:
    """An array that grows by its first dimension."""

    def __init__(self, writer: Writer, path: Path, dtype: str, inner: tuple[int, ...]) -> None:
        self.path, self.dtype = path, dtype
        self._writer, self._inner = writer, inner
        self._row = math.prod(inner) * TYPES[dtype][1]
        self._bytes = 0
        with writer.writing():
            self._file = path.open("xb", buffering=0)  # a buffer of Python's cannot be abandoned
        self._pending = bytearray()
        self._append(header(dtype, (0, *inner)))

    def append(self, buffer: Any) -> None:
        """More numbers, in C order and this machine's bytes; rows may come in pieces."""
        view = memoryview(buffer)
        self._append(view if view.format == "B" and view.ndim == 1 else view.cast("B"))
        self._bytes += view.nbytes

    def _append(self, data: bytes | memoryview) -> None:
        with self._writer.writing(len(data)):
            if len(self._pending) + len(data) > _BUFFER:
                self._flush()
            if len(data) > _BUFFER:
                _write(self._file, data)
            else:
                self._pending += data

    def _flush(self) -> None:
        _write(self._file, self._pending)
        self._pending = bytearray()

    @property
    def shape(self) -> tuple[int, ...]:
        """With as many rows as were appended."""
        return (self._bytes // self._row if self._row else 0, *self._inner)

    def close(self) -> None:
        """Write the final header, and everything to the disk."""
        assert not self._row or self._bytes % self._row == 0, f"{self.path.name} ends within a row"
        with self._writer.writing():
            self._flush()
            self._file.seek(0)
            _write(self._file, header(self.dtype, self.shape))
            os.fsync(self._file.fileno())
            self._file.close()

    def abandon(self) -> None:
        """Close the file, whatever is in it."""
        with contextlib.suppress(OSError):
            self._file.close()


def _write(file: FileIO, data: bytes | bytearray | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


class FixedArray:
    """An array of a shape known before, whose numbers come in any order."""

    def __init__(self, writer: Writer, path: Path, dtype: str, shape: tuple[int, ...]) -> None:
        self.path, self.dtype, self.shape = path, dtype, shape
        start = header(dtype, shape)
        length = math.prod(shape) * TYPES[dtype][1]
        self._map: mmap.mmap | None = None
        code: Any = TYPES[dtype][2]
        self.view: memoryview[Any] = memoryview(bytearray()).cast(code)
        with writer.writing(len(start) + length), path.open("xb+") as file:
            _reserve(file.fileno(), len(start) + length)  # a full disk would end us by SIGBUS later
            file.write(start)
            file.flush()
            if length:
                self._map = mmap.mmap(file.fileno(), len(start) + length)
                self.view = memoryview(self._map)[len(start) :].cast(code)
        self._writer = writer

    def close(self) -> None:
        """All on the disk."""
        with self._writer.writing():
            if self._map is not None:
                self._map.flush()
            with self.path.open("rb") as file:
                os.fsync(file.fileno())
        self.abandon()

    def abandon(self) -> None:
        """Let go of the memory; where somebody still holds a part of it, later."""
        with contextlib.suppress(BufferError):
            self.view.release()
            if self._map is not None:
                self._map.close()


def _reserve(handle: int, length: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, length)
        return
    for at in range(0, length, _BUFFER):
        os.pwrite(handle, bytes(min(_BUFFER, length - at)), at)


class Writer:
    """What a reader writes the arrays of a set with, in a folder aside."""

    def __init__(self, folder: Path, title: str) -> None:
        self._folder, self._title = folder, title
        self._bytes = 0
        self._arrays: dict[str, ArrayWriter | FixedArray] = {}
        self._progress: Progress | None = None

    def array(self, name: str, dtype: DType | str, inner_shape: Sequence[int] = ()) -> ArrayWriter:
        """A new array that grows; `dtype` is of the engine or its name."""
        array = ArrayWriter(self, self._path(name), _name(dtype), tuple(inner_shape))
        self._arrays[name] = array
        return array

    def fixed(self, name: str, dtype: DType | str, shape: Sequence[int]) -> memoryview[Any]:
        """The numbers of a new array of this shape, flat, all 0; what is put there is kept."""
        array = FixedArray(self, self._path(name), _name(dtype), tuple(shape))
        self._arrays[name] = array
        return array.view

    def _path(self, name: str) -> Path:
        assert name not in self._arrays, f"two arrays '{name}'"
        return self._folder / f"{name}.npy"

    def progress(self, total: int | None, unit: str) -> Progress:
        """Start to report progress; call its `advance`."""
        if self._progress is not None:
            self._progress.close()
        self._progress = Progress(f"preparing {self._title}", total, unit)
        return self._progress

    @contextlib.contextmanager
    def writing(self, count: int = 0) -> Iterator[None]:
        """A block that writes `count` bytes; an error of the disk becomes one with a cure."""
        self._bytes += count
        try:
            yield
        except OSError as error:
            raise write_error(error, self._folder, self._expected_bytes()) from None

    def _expected_bytes(self) -> int:
        """An estimate of the bytes of the whole set."""
        watched = self._progress
        if watched is None or not watched.total or not watched.current:
            return self._bytes
        return max(self._bytes, self._bytes * watched.total // watched.current)

    def close(self) -> dict[str, StoredArray]:
        """Everything on the disk, and the facts of each array."""
        for array in self._arrays.values():
            array.close()
        return {name: self._close_array(array) for name, array in self._arrays.items()}

    def _close_array(self, array: ArrayWriter | FixedArray) -> StoredArray:
        old = time.time() - _BACK_DATED
        with self.writing():
            array.path.chmod(0o444)
            os.utime(array.path, (old, old))
        sha256, identity = hashed(array.path)
        offset = len(header(array.dtype, array.shape))
        return StoredArray(array.dtype, array.shape, offset, sha256, identity)

    def abandon(self) -> None:
        """Let go of everything; what was written is removed by others."""
        self.end(given_up=True)
        for array in self._arrays.values():
            array.abandon()

    def end(self, *, given_up: bool = False) -> None:
        """End the report of progress."""
        if self._progress is not None:
            self._progress.close(given_up=given_up)
            self._progress = None


def _name(dtype: DType | str) -> str:
    name = dtype if isinstance(dtype, str) else dtype.name
    assert name in TYPES, f"no arrays of {name} are prepared"
    return name


def write_error(error: OSError, aside: Path, nbytes: int = 0) -> RunError:
    """The error for a disk that does not take prepared data, with a cure.

    `aside` is a folder in the cache whose files will be removed.
    """
    cache = path_text(aside.parent)
    if error.errno in _FULL:
        return RunError(
            f"the disk is full: prepared data needs {_amount(nbytes)} in {cache}, and "
            f"{_free(aside)} free there",
            code="E708",
            notes=("make room, such as by `gradcli data clean`", f"or {_ELSEWHERE}"),
        )
    # Either error means that a file is where a folder should be.
    file = error.errno in (errno.EEXIST, errno.ENOTDIR)
    reason = "that is a file, or lies below one" if file else error.strerror
    return RunError(
        f"prepared data cannot be written to {cache}: {reason}",
        code="E708",
        notes=(_ELSEWHERE,),
    )


def _amount(nbytes: int) -> str:
    return f"about {byte_size(nbytes)}" if nbytes else "room"


def _free(aside: Path) -> str:
    """What is free once those files are gone."""
    try:
        ours = sum(512 * path.stat().st_blocks for path in aside.glob("*"))
        return f"{byte_size(shutil.disk_usage(aside.parent).free + ours)} are"
    except OSError:
        return "too little is"


def as_json(arrays: Mapping[str, StoredArray]) -> dict[str, Any]:
    """The arrays as written to facts.json."""
    return {
        name: {
            "dtype": array.dtype,
            "shape": list(array.shape),
            "offset": array.offset,
            "sha256": array.sha256,
            "identity": array.identity.as_list(),
        }
        for name, array in arrays.items()
    }
