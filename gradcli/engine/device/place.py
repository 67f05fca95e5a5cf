"""Where fresh memory is made: on the device of what an op is given, else on the CPU.

An op on tensors of a GPU makes its results there. Everything else, such as what is read from files
and the numbers that Python keeps up, is the CPU's, whatever the model computes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from gradcli.engine.device.cpu import Storage
from gradcli.engine.dtype import DType
from gradcli.engine.shape import Shape


class Located(Protocol):
    """An array, as far as devices look at it."""

    storage: Storage
    offset: int
    shape: Shape
    strides: Shape
    dtype: DType


class Device(Protocol):
    """A device beside the CPU."""

    name: str
    multiplies_bfloat16: frozenset[str]  # kernels that take it as it is

    def allocate(self, nbytes: int) -> Storage:
        """Fresh memory there."""
        ...

    def run(
        self, kernel: str, arrays: Sequence[Located], sizes: Sequence[int], options: Sequence[float]
    ) -> None:
        """Run one call; arrays of the CPU among its inputs are taken there first."""
        ...

    def read(self, storage: Storage, start: int, nbytes: int) -> bytes:
        """Bytes of a block."""
        ...

    def elements(self, array: Located) -> bytes:
        """The bytes of a contiguous array, as the CPU has them."""
        ...

    def write(self, storage: Storage, start: int, data: bytes | memoryview) -> None:
        """Put bytes into a block."""
        ...


_fresh: ContextVar[Device | None] = ContextVar("fresh", default=None)
devices: list[Device] = []  # those beside the CPU that are in use; looked at in every call


def opened(device: Device) -> None:
    """From now on there is memory that is not the CPU's."""
    devices.append(device)


def fresh() -> Device | None:
    """Where an op's results are made; None for the CPU."""
    return _fresh.get()


@contextmanager
def on(device: Device | None) -> Iterator[None]:
    """Make fresh memory on this device inside a `with` block."""
    token = _fresh.set(device)
    try:
        yield
    finally:
        _fresh.reset(token)


def of(arrays: Iterable[Any]) -> Device | None:
    """The device of the first array that is not the CPU's."""
    for array in arrays:
        if array is not None and array.storage.device is not None:
            device: Device = array.storage.device
            return device
    return None
