"""The device of new memory: that of an op's inputs, else the CPU.

An op on tensors of a GPU allocates its results there. Data from files and numbers that Python
updates are on the CPU, whatever the model computes on. Tensors created from sizes alone follow the
enclosing `with engine.device(...)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, Token
from typing import Any, Protocol

from gradcli.engine.device.cpu import Storage
from gradcli.engine.dtype import DType
from gradcli.engine.shape import Shape


class DeviceArray(Protocol):
    """What a device reads of an array."""

    storage: Storage
    offset: int
    shape: Shape
    strides: Shape
    dtype: DType


class Device(Protocol):
    """A device other than the CPU."""

    name: str
    has_float64: bool
    widens_bfloat16: bool  # as the CPU's kernels do whose fact is `widens`

    @property
    def multiplies_bfloat16(self) -> frozenset[str]:
        """The kernels that read bfloat16 directly."""
        ...

    def allocate(self, nbytes: int) -> Storage:
        """New memory on it."""
        ...

    def run(
        self,
        kernel: str,
        arrays: Sequence[DeviceArray],
        sizes: Sequence[int],
        options: Sequence[float],
    ) -> None:
        """Run one call; arrays of the CPU among its inputs are taken there first."""
        ...

    def read(self, storage: Storage, start: int, nbytes: int) -> bytes:
        """Bytes of a block."""
        ...

    def elements(self, array: DeviceArray) -> bytes:
        """The bytes of a contiguous array, as the CPU has them."""
        ...

    def write(self, storage: Storage, start: int, data: bytes | memoryview) -> None:
        """Copy bytes into a block."""
        ...


_CALLER: Any = object()  # no op runs: the caller decides where memory is allocated
_inside: ContextVar[Device | None] = ContextVar("inside", default=_CALLER)
_default: ContextVar[Device | None] = ContextVar("default", default=None)
# Devices other than the CPU, once for each `register`; read in every call.
devices: list[Device] = []


def register(device: Device) -> None:
    """Tell the engine that memory of this device may exist."""
    devices.append(device)


def unregister(device: Device) -> None:
    """Undo one `register`."""
    devices.remove(device)


def current() -> Device | None:
    """The device of results and new tensors; None for the CPU."""
    device = _inside.get()
    return _default.get() if device is _CALLER else device


def default_device() -> Device | None:
    """The device of the enclosing block, for new tensors; None for the CPU, and inside an op."""
    return _default.get() if _inside.get() is _CALLER else None


@contextmanager
def on(device: Device | None) -> Iterator[None]:
    """Allocate on this device inside a `with` block."""
    token = _inside.set(device)
    if device is not None:
        register(device)
    try:
        yield
    finally:
        if device is not None:
            unregister(device)
        _inside.reset(token)


def enter(device: Device | None) -> Token[Device | None]:
    """Create new tensors on this device until `leave`; ops still follow their inputs."""
    if device is not None:
        register(device)
    return _default.set(device)


def leave(device: Device | None, token: Token[Device | None]) -> None:
    """Undo `enter`."""
    _default.reset(token)
    if device is not None:
        unregister(device)


def find(arrays: Iterable[Any]) -> Device | None:
    """The device of the first array that is not the CPU's."""
    for array in arrays:
        if array is not None and array.storage.device is not None:
            device: Device = array.storage.device
            return device
    return None


def for_inputs(arrays: Iterable[object]) -> AbstractContextManager[None]:
    """The scope of an op on these arrays: the device of the first that is not on the CPU.

    If all are on the CPU, the scope of the enclosing op holds; without arrays nothing changes.
    """
    present = [array for array in arrays if array is not None]
    if not present:
        return nullcontext()
    around = _inside.get()
    return on(find(present) or (None if around is _CALLER else around))
