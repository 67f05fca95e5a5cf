"""Several files mapped one behind the other, each from the beginning of a page, as one block."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from pathlib import Path

from gradcli import engine
from gradcli.data.files import shown
from gradcli.data.prepared.identity import FileIdentity
from gradcli.data.prepared.mapped import map_file
from gradcli.engine import DType, Tensor
from gradcli.engine.device import cpu
from gradcli.engine.device.guard import Guard
from gradcli.errors import DataError

_FIXED = 0x10  # MAP_FIXED, of Linux and macOS
_FAILED = ctypes.c_void_p(-1).value


class _Block(mmap.mmap):
    """Addresses of which files took their places; all of them go together."""

    guards: Sequence[Guard] = ()
    files: Sequence[Tensor] = ()  # which keep the files among those that are looked after

    def __del__(self) -> None:
        for guard in self.guards:
            guard.take_off()


def starts_of(sizes: Sequence[int]) -> list[int]:
    """Where each file begins, and behind them the end."""
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
    return starts


def map_joined(files: Sequence[tuple[Path, FileIdentity]], dtype: DType) -> Tensor:
    """All bytes of these files, read-only; behind each are zeros up to the next page."""
    starts = starts_of([identity.size for _, identity in files])
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    block = _Block(-1, starts[-1], flags=flags, prot=mmap.PROT_READ)
    address = cpu.address(cpu.borrow(block))
    block.files = [map_file(p, engine.uint8, (i.size,), 0, i) for p, i in files]
    places = [(address + start, i.size) for start, (_, i) in zip(starts, files, strict=False)]
    for (path, _), place in zip(files, places, strict=True):
        _overlay(path, *place)
    block.madvise(mmap.MADV_RANDOM)  # or a page of each sample would bring its neighbours along
    block.guards = [Guard(*place) for place in places]
    return engine.frombuffer(block, dtype=dtype)


def _overlay(path: Path, address: int, size: int) -> None:
    """Map a file at an address that is ours."""
    call = ctypes.CDLL(None, use_errno=True).mmap
    call.restype = ctypes.c_void_p
    call.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mapped = call(address, size, mmap.PROT_READ, mmap.MAP_SHARED | _FIXED, handle, 0)
    finally:
        os.close(handle)
    if mapped in (None, _FAILED):
        reason = os.strerror(ctypes.get_errno())
        raise DataError(f"'{shown(path)}' cannot be mapped: {reason}")
