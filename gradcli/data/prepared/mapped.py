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
from gradcli.errors import DataError
from gradcli.wording import quantity


@dataclass(frozen=True)
class Mapping:
    """A file that this process has mapped.

    Attributes:
        identity: of the file when it was opened.
        address: where its first byte lies in memory; `length` bytes are there.
    """

    path: Path
    identity: FileIdentity
    mmap: mmap.mmap
    address: int
    length: int


# Each with a weak reference: a mapping goes with the last tensor that looks into it.
_mappings: dict[int, tuple[Path, FileIdentity, weakref.ref[mmap.mmap], int, int]] = {}


def mappings() -> list[Mapping]:
    """All files that this process has mapped now."""
    there = []
    for path, identity, reference, address, length in list(_mappings.values()):
        mapped = reference()
        if mapped is not None:
            there.append(Mapping(path, identity, mapped, address, length))
    return there


def check_mappings(closely: bool) -> None:
    """Raise unless all mapped files are as they were when they were opened.

    Closely: the file system is asked about each. One that was removed keeps what was mapped.
    """
    if not closely:
        return
    for one in mappings():
        try:
            now = FileIdentity.of_status(one.path.stat())
        except OSError:
            continue
        if now != one.identity:
            raise DataError(
                f"data file '{shown(one.path)}' was changed while it was in use: "
                f"{_difference(one.identity, now)}; nothing is saved of what came since the last "
                "checkpoint",
                code="E312",
                notes=("restore the file, then go on from that with gradcli resume",),
            )


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
) -> Tensor:
    """Numbers that lie in a file from byte `offset` on, read-only and in C order.

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
        mapped = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
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


def _register(path: Path, identity: FileIdentity, mapped: mmap.mmap) -> None:
    start = cpu.address(cpu.borrow(mapped))
    number = id(mapped)

    def forget(_: object) -> None:
        _mappings.pop(number, None)

    reference = weakref.ref(mapped, forget)
    _mappings[number] = (path, identity, reference, start, len(mapped))
