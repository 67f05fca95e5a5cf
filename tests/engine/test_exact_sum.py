"""The kernel `exact_sum` against math.fsum, which is exact too."""

from __future__ import annotations

import math
import random
import struct
from array import array
from collections.abc import Sequence

import pytest

from gradcli import engine
from gradcli.engine.array import empty, run
from gradcli.engine.device import cpu
from gradcli.errors import GradcliError


def exact_sum(
    values: Sequence[float],
    marks: Sequence[int] = (),
    shift: float = 0.0,
    power: float = 1.0,
) -> float:
    total = empty((1,), engine.float64)
    numbers = engine.frombuffer(array("d", values), dtype=engine.float64)
    chosen = engine.frombuffer(bytes(marks), dtype=engine.uint8)
    run("exact_sum", numbers.array, chosen.array, total, options=(shift, power))
    result: float = total.tolist()[0]
    return result


def hostile(rng: random.Random) -> float:
    """A finite number that may be huge, tiny, subnormal or whole."""
    kind = rng.randrange(5)
    if kind == 0:
        value: float = struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0]
        return value if abs(value) < 1e300 else 0.0  # fsum takes no sums beyond all doubles
    if kind == 1:
        return rng.choice([5e-324, -5e-324, 2.3e-308, 0.0, -0.0, 2.0**53, 2.0**-53, 1e16, -1.0])
    if kind == 2:
        return rng.uniform(-1, 1) * 10.0 ** rng.randint(-300, 290)
    return rng.gauss(0, 1) if kind == 3 else float(rng.randint(-(2**60), 2**60))


def test_numbers_of_all_sizes_are_added_without_error() -> None:
    rng = random.Random(1)
    for _ in range(2000):
        values = [hostile(rng) for _ in range(rng.randrange(12))]
        values += [-value for value in values[: rng.randrange(len(values) + 1)]]
        assert exact_sum(values) == math.fsum(values), values


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1025, 16383, 16384, 16385, 50_000])
def test_many_numbers_are_added_without_error_and_so_are_their_squares(size: int) -> None:
    rng = random.Random(size)
    values = [rng.gauss(3, 1) * 10.0 ** rng.randint(-12, 12) for _ in range(size)]
    marks = [rng.randrange(2) for _ in range(size)]
    chosen = [value for value, mark in zip(values, marks, strict=True) if mark]
    assert exact_sum(values) == math.fsum(values)
    assert exact_sum(values, marks) == math.fsum(chosen)
    squares = [(value - 1.5) ** 2 for value in chosen]
    assert exact_sum(values, marks, 1.5, 2.0) == math.fsum(squares)


def test_squares_are_those_of_pow_to_the_last_bit() -> None:
    rng = random.Random(7)
    values = [rng.gauss(0, 1) * 10.0 ** rng.choice((0, 0, -3, 90, -140, -170)) for _ in range(4000)]
    # Whose squares lie near a power of two, where the digits below it are half as wide.
    values += [math.sqrt(2.0**n) * (1 + k * 2.0**-52) for n in range(-9, 9) for k in range(-9, 9)]
    values += [2.0**n * (1 + k * 2.0**-53) for n in range(-9, 9) for k in range(-9, 9)]
    for value in [*values, 0.0, -3.5, 5e-324, 1e154, math.nan]:
        expected, result = value**2.0, exact_sum([value], power=2.0)
        assert result == expected or (math.isnan(expected) and math.isnan(result)), value


def test_a_million_of_the_largest_numbers_carry() -> None:
    values = [1.7e308, -1.7e308] * 40_000 + [2.5]
    assert exact_sum(values) == 2.5
    assert exact_sum([2.0**-1074] * 70_000) == 70_000 * 2.0**-1074


def test_of_two_nearest_doubles_the_even_one_is_the_sum() -> None:
    for tail, expected in ((2.0**-53, 1.0), (2.0**-53 + 2.0**-90, 1.0 + 2.0**-52)):
        assert exact_sum([1.0, tail]) == math.fsum([1.0, tail]) == expected
        assert exact_sum([-1.0, -tail]) == -expected
    assert exact_sum([1.0 + 2.0**-52, 2.0**-53]) == 1.0 + 2.0**-51
    assert exact_sum([1.0, 2.0**-53, 5e-324]) == 1.0 + 2.0**-52


def test_what_is_not_finite_is_told_as_a_sum_would() -> None:
    inf, nan = math.inf, math.nan
    assert exact_sum([1.0, inf]) == inf
    assert exact_sum([-inf, 1e308]) == -inf
    assert math.isnan(exact_sum([inf, -inf]))
    assert math.isnan(exact_sum([nan, inf, 1.0]))
    assert exact_sum([nan, 2.0, inf], marks=[0, 1, 0]) == 2.0
    assert exact_sum([1.7e308] * 3) == inf  # no double is so large


def test_nothing_and_zeros_are_zero() -> None:
    assert exact_sum([]) == exact_sum([-0.0]) == exact_sum([1.0, -1.0]) == 0.0
    assert math.copysign(1, exact_sum([-0.0])) == 1  # as fsum has it
    assert exact_sum([3.0], marks=[0]) == 0.0


def test_parts_of_larger_memory_and_float32_are_read_where_they_lie() -> None:
    numbers = engine.arange(10, dtype=engine.float32)[2:7].array
    total = empty((1,), engine.float64)
    run("exact_sum", numbers, engine.zeros(0, dtype=engine.uint8).array, total, options=(0.0, 1.0))
    assert total.tolist() == [2 + 3 + 4 + 5 + 6]


def test_every_number_of_threads_gives_the_same_bits() -> None:
    rng = random.Random(5)
    values = [rng.gauss(0, 1) * 10.0 ** rng.randint(-30, 30) for _ in range(100_000)]
    before = cpu.threads()
    try:
        sums = set()
        for threads in (1, 2, 3):
            cpu.set_threads(threads)
            sums.add(exact_sum(values))
    finally:
        cpu.set_threads(before)
    assert sums == {math.fsum(values)}


def test_tensors_that_do_not_fit_are_refused() -> None:
    x, total = engine.zeros(4, dtype=engine.float64).array, empty((1,), engine.float64)
    for marks in (engine.zeros(3, dtype=engine.uint8), engine.zeros(4)):
        with pytest.raises(GradcliError):
            run("exact_sum", x, marks.array, total, options=(0.0, 1.0))
    every_second = engine.zeros(8, dtype=engine.float64)[::2].array
    with pytest.raises(GradcliError):
        run("exact_sum", every_second, engine.zeros(0, dtype=engine.uint8).array, total)
