"""Where fresh memory is made: on the device of what an op is given, else on the CPU.

An op on tensors of a GPU makes its results there. Everything else, such as what is read from files
and the numbers that Python keeps up, is the CPU's, whatever the model computes on. What is made of
sizes alone lies where a block `with engine.device(...)` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, Token
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
    has_float64: bool
    widens_bfloat16: bool  # as the CPU's kernels do whose fact is `widens`

    @property
    def multiplies_bfloat16(self) -> frozenset[str]:
        """The kernels that take it as it is."""
        ...

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


_CALLER: Any = object()  # no op is at work: the caller says where fresh memory is made
_inside: ContextVar[Device | None] = ContextVar("inside", default=_CALLER)
_default: ContextVar[Device | None] = ContextVar("default", default=None)
# Those beside the CPU, once for each reason to look for them; read in every call.
devices: list[Device] = []


def register(device: Device) -> None:
    """From now on there may be memory that is not the CPU's."""
    devices.append(device)


def closed(device: Device) -> None:
    """One reason less to look for it."""
    devices.remove(device)


def fresh() -> Device | None:
    """Where results and new tensors are made; None for the CPU."""
    device = _inside.get()
    return _default.get() if device is _CALLER else device


def default_device() -> Device | None:
    """The device of the enclosing block, for new tensors; None for the CPU, and inside an op."""
    return _default.get() if _inside.get() is _CALLER else None


@contextmanager
def on(device: Device | None) -> Iterator[None]:
    """Make fresh memory on this device inside a `with` block."""
    token = _inside.set(device)
    if device is not None:
        register(device)
    try:
        yield
    finally:
        if device is not None:
            closed(device)
        _inside.reset(token)


def enter(device: Device | None) -> Token[Device | None]:
    """From now on new tensors are made on this device, unless an op is given others."""
    if device is not None:
        register(device)
    return _default.set(device)


def leave(device: Device | None, token: Token[Device | None]) -> None:
    """The same as before `enter`."""
    _default.reset(token)
    if device is not None:
        closed(device)


def of(arrays: Iterable[Any]) -> Device | None:
    """The device of the first array that is not the CPU's."""
    for array in arrays:
        if array is not None and array.storage.device is not None:
            device: Device = array.storage.device
            return device
    return None


def beside(arrays: Iterable[object]) -> AbstractContextManager[None]:
    """A block for an op on these arrays: its results lie with the first that is not the CPU's.

    Arrays of the CPU alone belong to the op at work around this one, if there is one; without any,
    new memory is made where it was made before.
    """
    present = [array for array in arrays if array is not None]
    if not present:
        return nullcontext()
    around = _inside.get()
    return on(of(present) or (None if around is _CALLER else around))
