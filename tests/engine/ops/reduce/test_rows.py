"""Reductions of rows: blocks, ends, ties and NaN where numbers are looked at many at a time."""

from __future__ import annotations

import math
import random

import pytest

from gradcli import engine

SIZES = (1, 2, 63, 64, 65, 127, 128, 200, 1000)
SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf]


def place(row: list[float], name: str) -> int:
    """That of the first NaN, or of the first winner."""
    for index, value in enumerate(row):
        if value != value:
            return index
    return row.index((max if name == "max" else min)(row))


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", [engine.float32, engine.float64])
@pytest.mark.parametrize("size", SIZES)
def test_the_first_winner_is_chosen_wherever_it_stands(
    name: str, dtype: engine.DType, size: int
) -> None:
    draw = random.Random(size)
    for turn in range(30):
        numbers = [*SPECIAL, 0.5, -2.25] + [math.nan] * (turn % 3 == 0)
        rows = [[draw.choice(numbers) for _ in range(size)] for _ in range(3)]
        rows[1] = [0.5] * size
        rows[1][draw.randrange(size)] = draw.choice([2.0, -7.0, math.nan])
        x = engine.tensor(rows, dtype=dtype)
        values, places = getattr(x, name)(1)
        assert places.tolist() == [place(row, name) for row in rows]
        chosen = engine.tensor([row[place(row, name)] for row in rows], dtype=dtype)
        for one in (values, getattr(x, f"a{name}")(1)):
            assert [str(value) for value in one.tolist()] == [str(v) for v in chosen.tolist()]
        assert getattr(x, f"arg{name}")().item() == place([v for row in rows for v in row], name)


@pytest.mark.parametrize("dtype", [engine.int32, engine.int64, engine.uint8])
def test_whole_numbers_have_ties_too(dtype: engine.DType) -> None:
    draw = random.Random(3)
    for size in SIZES:
        row = [draw.randrange(5) for _ in range(size)]
        x = engine.tensor([row, row[::-1]], dtype=dtype)
        assert x.max(1)[1].tolist() == [place(row, "max"), place(row[::-1], "max")]
        assert x.argmin().item() == place(row + row[::-1], "min")


@pytest.mark.parametrize("dtype", [engine.float32, engine.float64, engine.bfloat16])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rows", [1, 3, 4, 5, 9])
def test_sums_of_many_rows_have_the_bits_of_each_alone(
    dtype: engine.DType, size: int, rows: int
) -> None:
    engine.manual_seed(size)
    x = engine.randn(rows, size).to(dtype)
    for name in ("sum", "mean"):
        alone = [getattr(x[i], name)().item() for i in range(rows)]
        assert getattr(x, name)(1).tolist() == alone
