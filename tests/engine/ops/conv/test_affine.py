"""Whole shifts and flips of images give the very pixels, however far they reach."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from gradcli import engine

H, W = 3, 5


@pytest.mark.parametrize("dtype", [engine.float32, engine.float64], ids=str)
@pytest.mark.parametrize(("down", "right"), [*itertools.product((1, -1), repeat=2)])
def test_shifts_and_flips_are_the_very_pixels(down: int, right: int, dtype: Any) -> None:
    shifts = list(itertools.product(range(-5, 9), range(-7, 13)))
    x = engine.rand(len(shifts), 2, H, W, dtype=dtype) + 1
    maps = [[down, 0, top, 0, right, left] for top, left in shifts]
    y = engine.affine(x, engine.tensor(maps, dtype=dtype)).tolist()
    pixels = x.tolist()
    for n, (top, left) in enumerate(shifts):
        for channel, i, j in itertools.product(range(2), range(H), range(W)):
            row, column = down * i + top, right * j + left
            inside = 0 <= row < H and 0 <= column < W
            assert y[n][channel][i][j] == (pixels[n][channel][row][column] if inside else 0)


@pytest.mark.parametrize("far", [1e30, -1e30, 3e7, float("inf")])
def test_places_far_away_are_zeros(far: float) -> None:
    x = engine.ones(1, 1, H, W)
    maps = engine.tensor([[1.0, 0.0, far, 0.0, 1.0, 0.0]])
    assert engine.affine(x, maps).tolist() == engine.zeros(1, 1, H, W).tolist()
