"""Windows of 2 x 2 in whole vectors, and the sums of batch norm, against what they stand for."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine.dtype import DType

FLOATS = [engine.float32, engine.float64]


def plane_of(rows: int, columns: int, n: int, dtype: DType) -> Any:
    numbers = [round(4 * math.sin(1.7 * i * i)) for i in range(n * rows * columns)]
    numbers[rows * columns // 2] = math.nan
    numbers[-3] = -math.inf
    return engine.tensor(numbers, dtype=dtype).reshape((1, n, rows, columns))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("size", [(28, 28), (14, 14), (7, 9), (3, 66), (2, 2), (5, 130)])
def test_pairs_of_pixels_give_the_first_maximum_and_the_first_nan(
    isa: str, dtype: DType, size: tuple[int, int]
) -> None:
    x = plane_of(*size, 3, dtype)
    y, index = engine.max_pool2d(x, 2, return_indices=True)
    for n, plane in enumerate(x[0].tolist()):
        for i in range(size[0] // 2):
            for j in range(size[1] // 2):
                places = [(2 * i + a, 2 * j + b) for a in (0, 1) for b in (0, 1)]
                best = places[0]
                for place in places[1:]:
                    v, top = plane[place[0]][place[1]], plane[best[0]][best[1]]
                    if not v <= top and top == top:
                        best = place
                assert index[0, n, i, j].item() == best[0] * size[1] + best[1]
                assert same(y[0, n, i, j].item(), plane[best[0]][best[1]])


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


# Channels in one task and in several, of one element a sample, of vectors and of odd lengths.
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    "shape", [(6, 8, 33), (6, 9, 1), (300, 3, 70), (4, 12, 64), (40, 300, 1)], ids=str
)
def test_batch_norm_and_its_gradient_are_what_their_parts_give(
    isa: str, dtype: DType, shape: tuple[int, int, int]
) -> None:
    numbers = [math.sin(1.7 * i) + math.cos(0.3 * i * i) for i in range(math.prod(shape))]
    # Far from 0, where a variance from squares alone would lose all its digits in float32.
    x = (engine.tensor(numbers, dtype=dtype).reshape(shape) + 1000).detach()
    up = engine.tensor(numbers[::-1], dtype=dtype).reshape(shape)
    exact = x.to(engine.float64)
    mean = exact.mean(dim=(0, 2), keepdim=True)
    rstd = (((exact - mean) ** 2).mean(dim=(0, 2), keepdim=True) + 1e-5) ** -0.5
    normal = (exact - mean) * rstd
    x.requires_grad = True
    y = engine.batch_norm(x, None, None, training=True)
    close = 1e-3 if dtype == engine.float32 else 1e-9
    assert largest(y - normal) < close
    (y * up).sum().backward()
    along = normal * (up * normal).mean(dim=(0, 2), keepdim=True)
    wanted = rstd * (up - up.mean(dim=(0, 2), keepdim=True) - along)
    assert largest(x.grad - wanted) < close


def largest(x: Any) -> float:
    return float(x.detach().abs().max().item())


def test_a_constant_channel_has_no_variance_and_an_infinite_one_no_norm() -> None:
    x = engine.full((4, 9, 40), 0.1)
    x[0, 3, 0] = math.inf
    running = engine.zeros(9), engine.ones(9)
    y = engine.batch_norm(x, *running, training=True, momentum=1.0)
    assert all(v == 0 for v in y[:, 0].reshape((160,)).tolist())
    assert all(math.isnan(v) for v in y[:, 3].reshape((160,)).tolist())
    assert running[0].tolist()[3] == math.inf
    assert running[1].tolist()[:2] == [0.0, 0.0]
