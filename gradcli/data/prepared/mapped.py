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
from gradcli.data.files import shown
from gradcli.data.prepared.identity import FileIdentity
from gradcli.dataclass import dataclass
from gradcli.engine import DType, Tensor
from gradcli.engine.device import cpu
from gradcli.engine.device.guard import Guard
from gradcli.errors import DataError
from gradcli.wording import quantity


@dataclass(frozen=True)
class Mapping:
    """A file that this process has mapped.

    Attributes:
        identity: of the file when it was opened.
        address: where its first byte lies in memory; `length` bytes are there.
        handle: of the file, where another one may take its place at the path.
    """

    path: Path
    identity: FileIdentity
    mmap: mmap.mmap
    address: int
    length: int
    guard: Guard
    handle: int | None = None

    def check(self, closely: bool) -> None:
        """Raise unless the file is as it was when it was opened; closely: its times too."""
        try:
            size = self.mmap.size()  # of what is mapped, whatever lies at its path by now
        except OSError as error:  # of a disk in the network that no longer knows the file
            raise self._changed(f"it can no longer be asked for: {error.strerror}") from None
        if self.guard.lost and size >= self.length:
            raise self._changed(f"it was shorter than {quantity(self.length, 'byte')} for a while")
        if size < self.length:
            raise self._changed(f"it had {quantity(self.length, 'byte')}, and has {size}")
        if not closely:
            return
        try:
            status = self.path.stat() if self.handle is None else os.fstat(self.handle)
            now = FileIdentity.of_status(status)
        except OSError:
            return
        if now != self.identity:
            raise self._changed(_difference(self.identity, now))

    def _changed(self, difference: str) -> DataError:
        return DataError(
            f"data file '{shown(self.path)}' was changed while it was in use: {difference}; "
            "nothing is saved of what came since the last checkpoint",
            code="E312",
            notes=("restore the file, then go on from that with gradcli resume",),
        )


class _Mapped(mmap.mmap):
    """A file in memory, guarded as long as it is there."""

    guard: Guard | None = None
    handle: int | None = None

    def __del__(self) -> None:
        if self.guard is not None:
            self.guard.take_off()
        if self.handle is not None:
            os.close(self.handle)


# Each with a weak reference: a mapping goes with the last tensor that looks into it.
_mappings: dict[int, tuple[Path, FileIdentity, weakref.ref[_Mapped], int]] = {}


def mappings() -> list[Mapping]:
    """All files that this process has mapped now."""
    there = []
    for path, identity, reference, address in list(_mappings.values()):
        mapped = reference()
        if mapped is not None and mapped.guard is not None:
            facts = (address, len(mapped), mapped.guard, mapped.handle)
            there.append(Mapping(path, identity, mapped, *facts))
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
        DataError: the file is shorter, or another one than `expected`, which was looked at before.
    """
    length = math.prod(shape) * dtype.size
    if not length:
        return engine.empty(tuple(shape), dtype=dtype)
    handle = _open(path)
    try:
        identity = FileIdentity.of_status(os.fstat(handle))
        if expected is not None and not identity.untouched(expected):
            raise DataError(f"'{shown(path)}' changed while it was opened; start again")
        if identity.size < offset + length:
            raise DataError(
                f"'{shown(path)}' has {quantity(identity.size, 'byte')}, expected at least "
                f"{offset + length}",
                code="E302",
            )
        mapped = _Mapped(handle, 0, access=mmap.ACCESS_READ)
        mapped.handle = os.dup(handle) if replaceable else None
    except OSError as error:
        raise DataError(f"'{shown(path)}' cannot be mapped: {error.strerror}") from None
    finally:
        os.close(handle)
    flat = engine.frombuffer(memoryview(mapped)[offset : offset + length], dtype=dtype)
    _register(path, identity, mapped)
    return flat.reshape(tuple(shape))


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise DataError(f"'{shown(path)}' cannot be read: {error.strerror}") from None


def _register(path: Path, identity: FileIdentity, mapped: _Mapped) -> None:
    start = cpu.address(cpu.borrow(mapped))
    number = id(mapped)

    def forget(_: object) -> None:
        _mappings.pop(number, None)

    reference = weakref.ref(mapped, forget)
    mapped.guard = Guard(start, len(mapped))
    _mappings[number] = (path, identity, reference, start)
