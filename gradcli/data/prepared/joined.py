"""Several files mapped one behind the other, each from the beginning of a page, as one block."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from pathlib import Path

from gradcli import engine
from gradcli.data.files import path_text
from gradcli.data.prepared.identity import FileIdentity
from gradcli.data.prepared.mapped import FileSlice, MappedMemory, identity_of, open_file, register
from gradcli.engine import DType, Tensor
from gradcli.engine.device import cpu
from gradcli.errors import DataError

_FIXED = 0x10  # MAP_FIXED, of Linux and macOS
_FAILED = ctypes.c_void_p(-1).value


def starts_of(sizes: Sequence[int]) -> list[int]:
    """Where each file begins, and behind them the end."""
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
    return starts


def map_joined(files: Sequence[tuple[Path, FileIdentity]], dtype: DType) -> Tensor:
    """All bytes of these files, read-only; behind each are zeros up to the next page.

    No file stays open: there may be more of them than a process may open.
    """
    starts = starts_of([identity.size for _, identity in files])
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    view = MappedMemory(-1, starts[-1], flags=flags, prot=mmap.PROT_READ)
    address = cpu.address(cpu.borrow(view))
    file_slices = [FileSlice(p, i, at, i.size) for at, (p, i) in zip(starts, files, strict=False)]
    for file_slice in file_slices:
        _overlay(file_slice, address + file_slice.start)
    register(view, file_slices)
    return engine.frombuffer(view, dtype=dtype)


def _overlay(file_slice: FileSlice, address: int) -> None:
    """Map a file at an address that is ours."""
    call = ctypes.CDLL(None, use_errno=True).mmap
    call.restype = ctypes.c_void_p
    call.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    handle, flags = open_file(file_slice.path), mmap.MAP_SHARED | _FIXED
    try:
        identity_of(handle, file_slice.path, file_slice.identity)
        mapped = call(address, file_slice.length, mmap.PROT_READ, flags, handle, 0)
    finally:
        os.close(handle)
    if mapped in (None, _FAILED):
        reason = os.strerror(ctypes.get_errno())
        raise DataError(f"'{path_text(file_slice.path)}' cannot be mapped: {reason}")
