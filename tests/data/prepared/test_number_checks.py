"""Numbers of a file that are not allowed are met wherever they lie, and no others."""

from __future__ import annotations

import math
import random
from array import array

from gradcli.data.prepared.number_checks import Below, FiniteCheck

TRIES = 2000


def test_the_first_number_that_is_not_finite_is_named() -> None:
    draw = random.Random(1)
    large = struct_largest()
    pool = [0.0, -0.0, 1.5, large, -large, 1e-45, math.nan, math.inf, -math.inf]
    for _ in range(TRIES):
        numbers = [draw.choice(pool) if draw.random() < 0.3 else draw.gauss(0, 1) for _ in range(9)]
        bad = next((i for i, x in enumerate(numbers) if not math.isfinite(x)), None)
        fault = FiniteCheck(offset=0, row=5).fault(array("f", numbers).tobytes(), 4 * 10)
        sample = None if bad is None else (10 + bad) // 5
        expected = f"sample {sample} holds {numbers[bad]}" if bad is not None else None
        assert (fault and fault.partition(",")[0]) == expected


def struct_largest() -> float:
    """Of float32."""
    return (2 - 2**-23) * 2.0**127


def test_the_first_number_above_is_named_in_any_width_and_byte_order() -> None:
    draw = random.Random(2)
    for _ in range(TRIES):
        width, order = draw.choice([1, 2, 4, 8]), draw.choice(["little", "big"])
        most = 1 << 8 * width
        limit = min(draw.choice([1, 2, 10, 255, 256, 257, 300, 50257, 65536, 1 << 20]), most)
        near = [limit - 1, limit % most, (limit + 1) % most, 0, 255, most - 1]
        count = draw.choice([0, 1, 7, 300])
        often = draw.random() < 0.5
        numbers = [draw.choice(near) if often else draw.randrange(limit) for _ in range(count)]
        bad = next((i for i, x in enumerate(numbers) if x >= limit), None)
        block = b"".join(x.to_bytes(width, order) for x in numbers)  # type: ignore[arg-type]
        check = Below(0, width, limit, "token", little=order == "little")
        expected = (
            f"token {20 + bad} is {numbers[bad]}, expected 0 to {limit - 1}"
            if bad is not None
            else None
        )
        assert check.fault(block, 20 * width) == expected


def test_what_is_asked_is_in_the_name() -> None:
    checks = [Below(0, 2, 9, "x"), Below(0, 2, 10, "x"), Below(4, 2, 9, "x"), Below(0, 4, 9, "x")]
    assert len({one.name for one in checks} | {Below(0, 2, 9, "x", little=False).name}) == 5
    assert FiniteCheck(0, 5).name == FiniteCheck(0, 7).name != FiniteCheck(8, 5).name
