"""Memory in which a file is mapped: should that become shorter, zeros are read and it is noted.

Without a guard the system would end the process with SIGBUS at such a read (csrc/cpu/guard.c).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

from gradcli.engine.device.kernels import ffi, lib
from gradcli.errors import DeviceError


class Guard:
    """Guards a range of addresses until it is taken off, before the file is unmapped."""

    __slots__ = ("_number",)

    def __init__(self, address: int, nbytes: int) -> None:
        self._number = lib.gc_guard(ffi.cast("void *", address), nbytes)
        if self._number < 0:
            raise DeviceError("too many files are mapped at the same time; join some of them")

    @property
    def truncated(self) -> bool:
        """Whether a part was read that the file no longer has; zeros came in its place."""
        return bool(lib.gc_guard_lost(self._number))

    def take_off(self, unguard: Callable[[int], None] = lib.gc_unguard) -> None:
        """Guard the range no longer; what it noted is forgotten."""
        number, self._number = self._number, -1
        unguard(number)  # an argument, for at the end of a process modules are empty


def will_need(address: int, firsts: array[int], row: int, nbytes: int) -> None:
    """Ask the system to read stretches of mapped memory soon, each `first` rows behind the address.

    Nobody waits for it, and Python goes on in other threads.
    """
    data, numbers = ffi.cast("char *", address), ffi.from_buffer("int64_t[]", firsts)
    lib.gc_will_need(data, numbers, len(firsts), row, nbytes)
