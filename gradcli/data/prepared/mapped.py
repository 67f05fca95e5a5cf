"""Files as tensors where they lie: mapped read-only, shared by all who map them."""

from __future__ import annotations

import math
import mmap
import os
import weakref
from collections.abc import Sequence
from pathlib import Path

from gradcli import engine
from gradcli.data import hashes
from gradcli.data.files import open_regular, path_text
from gradcli.data.prepared.identity import FileIdentity
from gradcli.dataclass import dataclass
from gradcli.engine import DType, Tensor
from gradcli.engine.device import cpu
from gradcli.engine.device.guard import Guard
from gradcli.errors import DataError
from gradcli.wording import quantity


class MappedMemory(mmap.mmap):
    """Memory in which one file lies, or several; all of it goes together.

    Attributes:
        guards: of each file.
        handle: of the file, where another one may take its place at the path.
    """

    guards: Sequence[Guard] = ()
    handle: int | None = None

    def __del__(self) -> None:
        for guard in self.guards:
            guard.take_off()
        if self.handle is not None:
            os.close(self.handle)


@dataclass(frozen=True)
class Mapping:
    """A file that this process has mapped.

    Attributes:
        identity: of the file when it was opened.
        view: where it lies, from byte `start` on.
        address: of its first byte in memory; `length` bytes are there.
        alone: the view is of this file, and knows it whatever lies at its path by now.
    """

    path: Path
    identity: FileIdentity
    view: mmap.mmap
    start: int
    address: int
    length: int
    guard: Guard
    alone: bool

    def check(self, closely: bool) -> None:
        """Raise unless the file is as it was when it was opened; closely: its times too."""
        size = self._size()
        if size < self.length:
            raise self._change_error(f"it had {quantity(self.length, 'byte')}, and has {size}")
        if self.guard.truncated:
            raise self._change_error(
                f"it was shorter than {quantity(self.length, 'byte')} for a while"
            )
        now = self._identity() if closely else None
        if now is not None and now != self.identity:
            raise self._change_error(_difference(self.identity, now))

    def _size(self) -> int:
        """The bytes that the mapped file has now."""
        if self.alone:
            try:
                return self.view.size()
            except OSError as error:  # of a disk in the network that no longer knows the file
                raise self._change_error(
                    f"it can no longer be asked for: {error.strerror}"
                ) from None
        now = self._identity()  # another file at its path says nothing of it
        return self.length if now is None or now.inode != self.identity.inode else now.size

    def _identity(self) -> FileIdentity | None:
        """What lies there now; None where nothing does."""
        try:
            handle = self.view.handle if isinstance(self.view, MappedMemory) else None
            return FileIdentity.of_status(self.path.stat() if handle is None else os.fstat(handle))
        except OSError:
            return None

    def _change_error(self, difference: str) -> DataError:
        return DataError(
            f"data file '{path_text(self.path)}' was changed while it was in use: {difference}; "
            "nothing is saved of what came since the last checkpoint",
            code="E312",
            notes=("restore the file, then go on from that with gradcli resume",),
        )


@dataclass(frozen=True)
class FileSlice:
    """Where in a view a file lies."""

    path: Path
    identity: FileIdentity
    start: int
    length: int


# Each with a weak reference: a mapping goes with the last tensor that looks into it.
_mappings: dict[int, tuple[weakref.ref[MappedMemory], int, Sequence[FileSlice]]] = {}


def mappings() -> list[Mapping]:
    """All files that this process has mapped now."""
    there = []
    for reference, address, slices in list(_mappings.values()):
        view = reference()
        if view is None:
            continue
        for file_slice, guard in zip(slices, view.guards, strict=True):
            at = file_slice.start, address + file_slice.start, file_slice.length
            there.append(
                Mapping(file_slice.path, file_slice.identity, view, *at, guard, len(slices) == 1)
            )
    return there


def check_mappings(closely: bool) -> None:
    """Raise unless all mapped files are as they were when they were opened.

    A file that was cut off is found at once; closely, the file system is asked for times too. One
    that was removed keeps what was mapped.
    """
    for mapping in mappings():
        mapping.check(closely)


def _difference(then: FileIdentity, now: FileIdentity) -> str:
    if now.inode != then.inode or now.device != then.device:
        return "another file lies in its place"
    if now.size != then.size:
        return f"it had {quantity(then.size, 'byte')}, and has {now.size}"
    return "it was written to"


hashes.lookouts.append(check_mappings)


def map_file(
    path: Path,
    dtype: DType,
    shape: Sequence[int],
    offset: int,
    expected: FileIdentity | None = None,
    *,
    replaceable: bool = False,
) -> Tensor:
    """Numbers that lie in a file from byte `offset` on, read-only and in C order.

    A `replaceable` file may be removed or get a successor of the same content while it is mapped.

    Raises:
        DataError: the file is shorter, or is not the file `expected` that was examined before.
    """
    length = math.prod(shape) * dtype.size
    if not length:
        return engine.empty(tuple(shape), dtype=dtype)
    handle = open_file(path)
    try:
        identity = identity_of(handle, path, expected)
        if identity.size < offset + length:
            raise DataError(
                f"'{path_text(path)}' has {quantity(identity.size, 'byte')}, expected at least "
                f"{offset + length}",
                code="E302",
            )
        view = MappedMemory(handle, 0, access=mmap.ACCESS_READ)
        view.handle = os.dup(handle) if replaceable else None
    except OSError as error:
        raise DataError(f"'{path_text(path)}' cannot be mapped: {error.strerror}") from None
    finally:
        os.close(handle)
    flat = engine.frombuffer(memoryview(view)[offset : offset + length], dtype=dtype)
    register(view, (FileSlice(path, identity, 0, len(view)),))
    return flat.reshape(tuple(shape))


def open_file(path: Path) -> int:
    """A handle that waits for nobody; whoever gets it closes it."""
    with open_regular(path) as file:
        return os.dup(file.fileno())


def identity_of(handle: int, path: Path, expected: FileIdentity | None) -> FileIdentity:
    """The identity of an open file; raises where it is not the expected one."""
    identity = FileIdentity.of_status(os.fstat(handle))
    if expected is not None and not identity.untouched(expected):
        raise DataError(f"'{path_text(path)}' changed while it was opened; start again")
    return identity


def register(view: MappedMemory, slices: Sequence[FileSlice]) -> None:
    """Guard the files in a view, and watch them while the view exists."""
    address, number = cpu.address(cpu.borrow(view)), id(view)

    def forget(_: object) -> None:
        _mappings.pop(number, None)

    view.guards = [Guard(address + file_slice.start, file_slice.length) for file_slice in slices]
    _mappings[number] = weakref.ref(view, forget), address, slices
