"""Arguments of a launch as NVIDIA's driver takes them."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from gradcli.engine.device.gpu.driver import Address, value_bytes
from gradcli.engine.device.kernels import ffi


class KernelParams:
    """The arguments of a launch as the driver wants them: pointers to values."""

    def __init__(self, args: Iterable[Address | int | float | bytes]) -> None:
        packed = [_packed(arg) for arg in args]
        self._values = ffi.new("char[]", b"".join(packed))
        at, pointers = self._values + 0, []
        for value in packed:
            pointers.append(at)
            at += len(value)
        self._pointers = ffi.new("void *[]", pointers or 1)
        self.address = address_of(self._pointers)


def _packed(arg: Address | int | float | bytes) -> bytes:
    """A value as it lies in memory, padded so that the next one is aligned."""
    if isinstance(arg, Address):
        return struct.pack("2Q", arg.handle + arg.offset, 0)
    data = value_bytes(arg)
    return data + bytes(-len(data) % 16)


def address_of(pointer: object) -> int:
    """A pointer as a number."""
    return int(ffi.cast("uintptr_t", pointer))
