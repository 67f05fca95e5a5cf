"""Tensor cores on the CPU: words lie where the PTX manual has them, and what kernels do wrong with
copies that arrive later is found."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Sequence

import pytest
from host_driver import ORDERS, HostDriver

from gradcli.engine.device.gpu.driver import Address, Ready
from gradcli.engine.device.gpu.source import prelude_text
from gradcli.errors import DeviceError

MATRICES = """
KERNEL(matrices, 32, IN(uint, x), OUT(uint, y)) {
  SHARED(uint, kept, 128);
  for (uint i = 0; i < 4; i++)
    kept[4 * LANE + i] = x[4 * LANE + i];
  BARRIER();
  SHP(uint) const row = kept + 4 * LANE;
  const Words4 plain = load_matrices(row);
  const Words4 turned = load_turned(row);
  for (uint i = 0; i < 4; i++) {
    y[4 * LANE + i] = plain.at[i];
    y[128 + 4 * LANE + i] = turned.at[i];
  }
}
"""
PRODUCT = """
KERNEL(product, 32, IN(uint, a), IN(uint, b), OUT(float, c)) {
  Words4 left;
  Quad sums = {{1.0f, 2.0f, 3.0f, 4.0f}};
  for (uint i = 0; i < 4; i++)
    left.at[i] = a[4 * LANE + i];
  sums = %s(sums, left, b[2 * LANE], b[2 * LANE + 1]);
  for (uint i = 0; i < 4; i++)
    c[4 * LANE + i] = sums.at[i];
}
"""
ROUNDED = """
KERNEL(rounded, 32, IN(uint, x), OUT(uint, y)) {
  y[LANE] = round_tf32(x[LANE]);
}
"""
COPIED = """
KERNEL(copied, 64, IN(float, x), OUT(uint, y), VAL(uint, n)) {
  SHARED(uint, kept, 512);
  SHP(uint) const own = kept + 4 * TID.x;
  (void)x, (void)y, (void)n, (void)own;
  %s
}
"""


class Bench:
    """A driver with one kernel."""

    def __init__(self, text: str, order: str = "forward", *, checked: bool = True) -> None:
        self.driver = HostDriver(order=order, checked=checked)
        self.driver.load("m", prelude_text("cuda") + text)

    def filled(self, data: bytes) -> Address:
        address = Address(self.driver.allocate(len(data)), 0)
        self.driver.write(address, data)
        return address

    def run(
        self, kernel: str, inputs: Sequence[bytes], made: int, *args: int, threads: int = 32
    ) -> bytes:
        """What the kernel writes of so many bytes."""
        addresses = [self.filled(data) for data in inputs]
        out = self.filled(bytes(made))
        ready = Ready("m", kernel, (1, 1, 1), threads, (*addresses, out, *args))
        self.driver.launch(ready)
        data = bytearray(made)
        self.driver.read(out, memoryview(data))
        return bytes(data)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("checked", [True, False])
def test_lanes_get_words_of_matrices(order: str, checked: bool) -> None:
    """Element (r, c) of matrix j is the half 64 j + 8 r + c."""
    given = struct.pack("256H", *range(256))
    found = Bench(MATRICES, order, checked=checked).run("matrices", [given], 1024)
    words = struct.unpack("256I", found)
    for lane in range(32):
        group, member = divmod(lane, 4)
        for j in range(4):
            low = 64 * j + 8 * group + 2 * member
            assert words[4 * lane + j] == low | (low + 1) << 16
            low = 64 * j + 8 * (2 * member) + group
            assert words[128 + 4 * lane + j] == low | (low + 8) << 16


def halves(low: float, high: float) -> int:
    """Two bfloat16 numbers in a word; both are exact."""
    (first,), (second,) = (struct.unpack("I", struct.pack("f", x)) for x in (low, high))
    return first >> 16 | second & 0xFFFF0000


@pytest.mark.parametrize("order", ORDERS)
def test_bfloat16_matrices_are_multiplied(order: str) -> None:
    """The layouts are those of mma.m16n8k16 in the PTX manual, in its own terms."""
    rng = random.Random(3)
    a = [[float(rng.randrange(-9, 9)) for _ in range(16)] for _ in range(16)]
    b = [[float(rng.randrange(-9, 9)) for _ in range(8)] for _ in range(16)]
    left, right = [], []
    for lane in range(32):
        group, member = divmod(lane, 4)
        for i in (0, 2, 4, 6):
            row = group if i < 2 or 4 <= i < 6 else group + 8
            column = member * 2 + (8 if i >= 4 else 0)
            left.append(halves(a[row][column], a[row][column + 1]))
        for i in (0, 2):
            row = member * 2 + (8 if i >= 2 else 0)
            right.append(halves(b[row][group], b[row + 1][group]))
    given = [struct.pack("128I", *left), struct.pack("64I", *right)]
    found = Bench(PRODUCT % "mma_bf16", order).run("product", given, 512)
    assert sums_of(found) == wanted_of(a, b)


@pytest.mark.parametrize("order", ORDERS)
def test_tf32_matrices_are_multiplied(order: str) -> None:
    """The layouts are those of mma.m16n8k8 in the PTX manual."""
    rng = random.Random(4)
    a = [[float(rng.randrange(-900, 900)) for _ in range(8)] for _ in range(16)]
    b = [[float(rng.randrange(-9, 9)) for _ in range(8)] for _ in range(8)]
    left, right = [], []
    for lane in range(32):
        group, member = divmod(lane, 4)
        for i in range(4):
            left.append(a[group if i in (0, 2) else group + 8][member if i < 2 else member + 4])
        right += [b[member][group], b[member + 4][group]]
    given = [struct.pack("128f", *left), struct.pack("64f", *right)]
    found = Bench(PRODUCT % "mma_tf32", order).run("product", given, 512)
    assert sums_of(found) == wanted_of(a, b)


def sums_of(found: bytes) -> list[list[float]]:
    """A matrix of 16 x 8 from what lanes hold of it."""
    numbers = struct.unpack("128f", found)
    made = [[0.0] * 8 for _ in range(16)]
    for lane in range(32):
        group, member = divmod(lane, 4)
        for i in range(4):
            row, column = group if i < 2 else group + 8, member * 2 + (i & 1)
            made[row][column] = numbers[4 * lane + i] - (i + 1)
    return made


def wanted_of(a: list[list[float]], b: list[list[float]]) -> list[list[float]]:
    columns = list(zip(*b, strict=True))
    return [[sum(map(float.__mul__, row, column)) for column in columns] for row in a]


def test_numbers_are_rounded_to_tf32() -> None:
    """To 10 bits behind the first, halves away from 0; a NaN stays one."""
    step = 2.0**-10
    numbers = [1 + step / 2, -1 - step / 2, 1 + step * 0.49, 2 - step / 2, 3e38, math.inf, 0.0]
    wanted = [1 + step, -1 - step, 1.0, 2.0, 3e38, math.inf, 0.0]
    given = struct.pack("32f", *numbers, *[math.nan] * (32 - len(numbers)))
    found = struct.unpack("32f", Bench(ROUNDED).run("rounded", [given], 128))
    assert found[:4] == tuple(wanted[:4])
    assert found[4] == pytest.approx(3e38, rel=step / 2)
    assert found[5:7] == tuple(wanted[5:])
    assert all(x != x for x in found[7:])


def copied(body: str, order: str = "forward", *, checked: bool = True) -> list[float]:
    """What 64 threads leave in y, of 256 floats that count from 0."""
    given = struct.pack("256f", *range(256))
    bench = Bench(COPIED % body, order, checked=checked)
    made = bench.run("copied", [given], 1024, 256, threads=64)
    return list(struct.unpack("256f", made))


WAIT = "copies_end(); COPIES_LEFT(0);"
BRING = "copy_async(own, x + 4 * TID.x, 16);"
SHOW = "for (uint i = 0; i < 4; i++) y[4 * TID.x + i] = kept[4 * TID.x + i];"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("checked", [True, False])
def test_copies_arrive(order: str, checked: bool) -> None:
    ends = "copies_end(); COPIES_LEFT(0); BARRIER();"
    assert copied(BRING + ends + SHOW, order, checked=checked) == list(map(float, range(256)))
    other = SHOW.replace("kept[4 * TID.x", "kept[4 * (TID.x ^ 32)")
    found = copied(BRING + ends + other, order, checked=checked)
    assert found == [float(i ^ 128) for i in range(256)]
    first = BRING.replace("16)", "8)")
    assert copied(first + ends + SHOW, order, checked=checked)[:5] == [0.0, 1.0, 0.0, 0.0, 4.0]


def test_who_waits_for_older_copies_has_only_those() -> None:
    two = (
        f"{BRING} copies_end(); copy_async(own + 256, x + 4 * TID.x, 16); copies_end();"
        " COPIES_LEFT(1); BARRIER();"
    )
    late = SHOW.replace("kept[4 * TID.x", "kept[256 + 4 * TID.x") + "COPIES_LEFT(0);"
    assert copied(f"{two} {SHOW} COPIES_LEFT(0);") == list(map(float, range(256)))
    assert all(x != x for x in copied(two + late))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (f"{BRING} copies_end(); BARRIER();", "ended while copies of it were on their way"),
        (f"{BRING} COPIES_LEFT(0);", "ended while copies of it were on their way"),
        (f"copy_async(own + 1, x, 16); {WAIT}", "no multiples of 16 bytes"),
        (f"copy_async(own, x + 2, 16); {WAIT}", "no multiples of 16 bytes"),
        (
            f"copy_async(own, x + 8 + 4 * TID.x, 16); {WAIT}",
            "reads element 2(56|60) of parameter 0",
        ),
        (f"copy_async(own + 260, x, 16); {WAIT}", "writes element 512 of shared array kept"),
        (
            f"{BRING} {WAIT} y[TID.x] = kept[4 * (TID.x ^ 32)];",
            "(race|unset): .* shared array kept",
        ),
        (
            f"kept[4 * TID.x] = 1; BARRIER(); y[TID.x] = kept[4 * (TID.x ^ 32)]; {BRING} {WAIT}",
            "race: .* shared array kept",
        ),
        (
            "own[0] = own[1] = own[2] = own[3] = 0; if (LANE < 9) (void)load_matrices(own);",
            "9 of 32 lanes came",
        ),
        ("(void)load_matrices(own + 2);", "no multiple of 16 bytes"),
        ("(void)load_matrices(own);", "unset: reads element .* of shared array kept"),
    ],
)
@pytest.mark.parametrize("order", ORDERS)
def test_a_planted_mistake_is_found(body: str, said: str, order: str) -> None:
    with pytest.raises(DeviceError, match=said):
        copied(body, order)
