"""The kernel `read_numerals` against Python's float, which rounds once too."""

from __future__ import annotations

import math
import random
import re
import struct
from collections.abc import Sequence

import pytest

from gradcli import engine
from gradcli.engine import Tensor
from gradcli.engine.array import empty, run

NUMBER = re.compile(r" *[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *", re.ASCII)


def read(cells: Sequence[str]) -> tuple[list[float], list[int]]:
    """The numbers of the cells, and for each whether it is left to others."""
    numbers, odd = empty((len(cells),), engine.float64), empty((len(cells),), engine.uint8)
    text = engine.frombuffer("\n".join(cells).encode(), dtype=engine.uint8)
    run("read_numerals", text.array, numbers, odd)
    return Tensor(numbers).tolist(), Tensor(odd).tolist()


def check(cells: Sequence[str]) -> int:
    """Every number has the bits of `float`; how many were read."""
    numbers, odd = read(cells)
    for cell, number, left in zip(cells, numbers, odd, strict=True):
        if left:
            assert math.isnan(number), cell
        else:
            assert NUMBER.fullmatch(cell), cell
            assert struct.pack("d", number) == struct.pack("d", float(cell)), cell
    return odd.count(0)


PLAIN = ["0", "-0", "+0.0", "7", "-7.", ".5", "+.5e1", "1e5", "1E-5", "1e+05", "  12 ", "007.50"]
PLAIN += ["9007199254740993", "9007199254740992.5", "0.1", "123456789012345678", "1e19", "3e-19"]
PLAIN += ["9999999999999999999", "18014398509481985", "0.3333333333333333", "2.2250738585072014"]


def test_plain_numbers_are_read() -> None:
    assert check(PLAIN) == len(PLAIN)


NONE = [
    "",
    " ",
    ".",
    "-",
    "+",
    "e5",
    "1e",
    "1e+",
    "1_0",
    "0x1",
    "nan",
    "inf",
    "1 2",
    "--1",
    "1.2.3",
]
NONE += ["1,5", "\t1", "1\r", "1\0", "Infinity", "1e5.0", "1d5"]
FOREIGN = ["1e20", "1e-20", "12345678901234567890", "1e400", "5e-324", "1e" + "9" * 40]


@pytest.mark.parametrize("cells", [NONE, FOREIGN], ids=["none", "too long or too far"])
def test_what_is_no_number_or_needs_more_bits_is_left_to_others(cells: list[str]) -> None:
    assert check(cells) == 0


def written(rng: random.Random) -> str:
    """A number as some program might write it."""
    kind = rng.randrange(6)
    if kind == 0:
        return repr(rng.gauss(0, 1) * 10.0 ** rng.randint(-6, 6))
    if kind == 1:
        return f"{rng.gauss(0, 1) * 10.0 ** rng.randint(-9, 9):.{rng.randrange(1, 20)}g}"
    if kind == 2:
        return str(rng.randint(-(10 ** rng.randrange(1, 20)), 10 ** rng.randrange(1, 20)))
    if kind == 3:  # near the middle of two doubles
        return str((2 * rng.randrange(2**52, 2**53) + 1) * 2 ** rng.randrange(9))
    if kind == 4:
        return f"{rng.randrange(10 ** rng.randrange(1, 19))}e{rng.randint(-19, 19)}"
    return f"{rng.uniform(-1e4, 1e4):.{rng.randrange(9)}f}"


def test_numbers_have_the_bits_of_float() -> None:
    rng = random.Random(1)
    cells = [written(rng) for _ in range(40_000)]
    assert check(cells) > 30_000


def test_spoilt_numbers_are_read_like_python_reads_them_or_not_at_all() -> None:
    rng = random.Random(2)
    cells = []
    for _ in range(20_000):
        letters = list(written(rng))
        for _ in range(rng.randrange(1, 3)):
            letters[rng.randrange(len(letters))] = rng.choice("0123456789.eE+- _x")
        cells.append("".join(letters))
    check(cells)


def test_lines_that_are_missing_are_no_numbers_and_more_are_passed_by() -> None:
    numbers, odd = empty((3,), engine.float64), empty((3,), engine.uint8)
    for text, expected in ((b"", [1, 1, 1]), (b"1\n2", [0, 0, 1]), (b"1\n2\n3\n4\n", [0, 0, 0])):
        run("read_numerals", engine.frombuffer(text, dtype=engine.uint8).array, numbers, odd)
        assert Tensor(odd).tolist() == expected
