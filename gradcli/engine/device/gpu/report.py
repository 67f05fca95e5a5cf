"""Report: how kernels say that a value is refused: a bad index, a number that is not finite.

A kernel cannot raise. It writes into a block of numbers (csrc/gpu/report.h: code of the call,
where, value, limit, step), the first to come wins, and the host looks there when it reads results.
"""

from __future__ import annotations

import struct

from gradcli.engine.device.cpu import refused_value
from gradcli.engine.device.gpu.driver import Address, Driver
from gradcli.errors import GradcliError

_BLOCK = struct.Struct("5i")
_STEP = struct.Struct("i")  # behind it: the number of the step, which the host writes


class DeviceErrorReport:
    """The block of one device, and the names of the calls that may write there."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.address = Address(driver.allocate(_BLOCK.size + _STEP.size), 0)
        self.step = 0  # in which the latest refusal came
        self._codes: dict[str, int] = {}
        self._clear()
        self.begin(0)

    def _clear(self) -> None:
        self._driver.write(self.address, bytes(_BLOCK.size))

    def begin(self, step: int) -> None:
        """From here on what is refused is refused in this step."""
        at = Address(self.address.handle, self.address.offset + _BLOCK.size)
        self._driver.write(at, _STEP.pack(step))

    def code(self, kernel: str) -> int:
        """The number by which a kernel's call is known, from 1 on."""
        return self._codes.setdefault(kernel, len(self._codes) + 1)

    def take_error(self) -> GradcliError | None:
        """The error of a value that a kernel has refused since the last call; None without one."""
        if not self._codes:
            return None
        data = bytearray(_BLOCK.size)
        self._driver.read(self.address, memoryview(data))
        code, where, value, limit, self.step = _BLOCK.unpack(data)
        if not code:
            return None
        self._clear()
        names = {number: kernel for kernel, number in self._codes.items()}
        return refused_value(names[code], where, value, limit)

    def check(self) -> None:
        """Raise what a kernel has refused."""
        error = self.take_error()
        if error is not None:
            error.of_earlier_op = True
            raise error
