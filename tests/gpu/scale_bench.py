"""A driver with one module of kernels and two blocks of numbers: what its tests launch on."""

from __future__ import annotations

from array import array

from gradcli.engine.device.gpu.driver import Address, Driver, Ready
from gradcli.engine.device.gpu.source import prelude_text

SCALE = """
struct Shift { float by, unused[20]; };
KERNEL(scale, 256, IN(float, x), OUT(float, y), VAL(uint, n), VAL(float, by)) {
  const uint i = BID.x * BDIM.x + TID.x;
  if (i < n) y[i] = by * x[i];
}
KERNEL(shift, 32, IN(float, x), OUT(float, y), VAL(Shift, s), VAL(uint, n)) {
  const uint i = BID.x * BDIM.x + TID.x;
  if (i < n) y[i] = x[i] + s.by;
}
"""
N = 300


class ScaleBench:
    """A device with one module, and two blocks of N floats; `x` counts from 0."""

    def __init__(self, driver: Driver, faulty: str) -> None:
        """`faulty` is the text of a kernel that fails."""
        self._driver = driver
        driver.load("scale", prelude_text(driver.target) + SCALE + faulty)
        self.x, self.y = (Address(driver.allocate(4 * N), 0) for _ in range(2))
        self.numbers = array("f", [float(i) for i in range(N)])
        driver.write(self.x, memoryview(self.numbers))

    def scale(self, source: Address, to: Address, by: float, n: int = N) -> Ready:
        return Ready("scale", "scale", (-(-N // 256), 1, 1), 256, (source, to, n, by))

    def faulty(self) -> Ready:
        return Ready("scale", "faulty", (1, 1, 1), 32, (self.x, 7))

    def floats(self, address: Address) -> list[float]:
        into = array("f", bytes(4 * N))
        self._driver.read(address, memoryview(into))
        return into.tolist()
