"""The meta device: tensors with a shape and a type and without memory; nothing is computed.

Every call is checked and planned in C as on the CPU, and refused with the same sentence; only what
depends on values cannot be known. So a model says what leaves it, how many parameters it has and
what is wrong with it before a byte of it is there:

    with engine.device("meta"), engine.no_grad():
        model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.Flatten(), nn.Linear(14400, 10))
        print(model(engine.empty(2, 3, 32, 32)).shape)  # (2, 10)

It costs nothing while no such tensor lives and no such block is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gradcli import devices
from gradcli.engine.device import cpu, scope
from gradcli.engine.device.cpu import Storage
from gradcli.engine.device.program import plan_call
from gradcli.engine.device.scope import DeviceArray
from gradcli.engine.shape import numel
from gradcli.errors import DeviceError

_FIRST, _LAST = 1 << 60, 1 << 62  # addresses that no memory has
_PAGE = 4096


class Imagined(Storage):
    """A block that is not there; the device is in use as long as it lives.

    Attributes:
        counted: the bytes that it would take of the memory; none for a file that is mapped.
    """

    __slots__ = ("address", "resident")

    def __init__(self, device: Meta, nbytes: int, address: int, *, mapped: bool = False) -> None:
        super().__init__(None, nbytes, device=device)
        self.address = address
        self.resident = 0 if mapped else nbytes
        device.allocated += self.resident
        device.mapped += nbytes - self.resident
        scope.register(device)
        for look in cpu.looking:
            look()

    def count(self, resident: int) -> None:
        """Count so many bytes as resident from now on; the rest is only mapped."""
        self.device.allocated += resident - self.resident
        self.device.mapped -= resident - self.resident
        self.resident = resident

    def __del__(self) -> None:
        self.device.allocated -= self.resident
        self.device.mapped -= self.nbytes - self.resident
        self.device.uses.remove(self.device)


class Meta:
    """The device "meta".

    Attributes:
        allocated: bytes that its tensors would hold.
        mapped: bytes of files that they would only look at.
        blank: whether numbers that are asked for are 0, and not refused; see `blank`.
        uses: the devices in use. Kept here, as Python may end and empty modules before tensors.
    """

    name = devices.META
    has_float64 = True
    widens_bfloat16 = True  # as the CPU does

    def __init__(self) -> None:
        self.allocated = 0
        self.mapped = 0
        self.blank = False
        self.uses = scope.devices
        self._next = _FIRST

    @property
    def multiplies_bfloat16(self) -> frozenset[str]:
        """What the CPU multiplies."""
        return cpu.multiplies_bfloat16()

    def allocate(self, nbytes: int, *, mapped: bool = False) -> Imagined:
        """A block under an address that no other one has; or a file that is mapped there."""
        if self._next + nbytes > _LAST:
            self._next = _FIRST
        if self._next + nbytes > _LAST:
            raise DeviceError("meta: a tensor of more than 2^61 bytes fits nowhere")
        address = self._next
        self._next += -(-(nbytes + 1) // _PAGE) * _PAGE
        return Imagined(self, nbytes, address, mapped=mapped)

    def run(
        self,
        kernel: str,
        arrays: Sequence[DeviceArray],
        sizes: Sequence[int],
        options: Sequence[float],
    ) -> None:
        """Refuse what the CPU refuses of a call before it computes; and that is all."""
        plan_call(kernel, arrays, sizes, options)

    def read(self, storage: Storage, start: int, nbytes: int) -> bytes:
        """There is nothing to read."""
        if self.blank:
            return bytes(nbytes)
        raise DeviceError(
            "a tensor on 'meta' has a shape and a type but no numbers, and they are asked for "
            "(by item, tolist, or an op whose result depends on them); make it on another device"
        )

    def elements(self, array: DeviceArray) -> bytes:
        """There are none."""
        return self.read(array.storage, 0, numel(array.shape) * array.dtype.size)

    def write(self, storage: Storage, start: int, data: bytes | memoryview) -> None:
        """Nobody will look."""


DEVICE = Meta()


@contextmanager
def blank(on: bool = True) -> Iterator[None]:
    """Inside the block numbers that Python asks for are 0: whoever only shows them goes on."""
    before, DEVICE.blank = DEVICE.blank, on
    try:
        yield
    finally:
        DEVICE.blank = before
