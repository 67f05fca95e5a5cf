"""Products and their gradients: of many numbers, by any number of threads, beyond float32."""

from __future__ import annotations

import math
import random

import pytest

from gradcli import engine
from gradcli.engine.device import cpu

SHAPES = [(3, 1), (2, 7), (3, 8), (5, 33), (2, 70), (1, 9001), (70, 130), (9001, 2), (300, 13)]


def numbers(shape: tuple[int, int], seed: int = 1) -> list[list[float]]:
    draw = random.Random(seed)
    return [
        [draw.choice((-1, 1)) * draw.uniform(0.9, 1.1) for _ in range(shape[1])]
        for _ in range(shape[0])
    ]


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_and_gradients_are_those_of_plain_numbers(
    shape: tuple[int, int], dim: int | None
) -> None:
    x = engine.tensor(numbers(shape), dtype=engine.float64, requires_grad=True)
    rows = x.tolist() if dim == 1 else [list(column) for column in zip(*x.tolist(), strict=True)]
    rows = rows if dim is not None else [[v for row in x.tolist() for v in row]]
    y = x.prod(dim)
    wanted = [math.prod(row) for row in rows]
    found = y.tolist() if dim is not None else [y.tolist()]
    assert found == pytest.approx(wanted, rel=1e-11)
    y.sum().backward()
    slopes = [product / v for row, product in zip(rows, wanted, strict=True) for v in row]
    assert x.grad is not None
    grad = x.grad.t() if dim == 0 else x.grad
    assert grad.reshape(-1).tolist() == pytest.approx(slopes, rel=1e-11)


@pytest.mark.parametrize("dtype", [engine.float32, engine.float64, engine.bfloat16])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_bits_are_the_same_for_any_number_of_threads(
    shape: tuple[int, int], dtype: engine.DType
) -> None:
    def bits(threads: int) -> list[object]:
        cpu.set_threads(threads)
        seen = []
        for dim in (0, 1, None):
            x = engine.tensor(numbers(shape), dtype=dtype, requires_grad=True)
            y = x.prod(dim)
            y.sum().backward()
            assert x.grad is not None
            seen += [y.tolist(), x.grad.tolist()]
        return seen

    before = cpu.threads()
    try:
        assert bits(1) == bits(4)
    finally:
        cpu.set_threads(before)


def test_what_is_multiplied_on_the_way_may_be_beyond_float32() -> None:
    x = engine.tensor([1e30, 1e30, 1e-30, 1e-30, 2.0], requires_grad=True)
    y = x.prod()
    y.backward()
    assert y.item() == 2.0
    assert x.grad is not None
    assert x.grad.tolist() == pytest.approx([2e-30, 2e-30, 2e30, 2e30, 1.0])


def test_nan_and_infinity_are_multiplied_into_the_others_only() -> None:
    x = engine.tensor([[2.0, math.inf], [3.0, math.nan], [0.0, 5.0]], requires_grad=True)
    y = x.prod(1)
    y.sum().backward()
    assert str(y.tolist()) == "[inf, nan, 0.0]"
    assert x.grad is not None
    assert str(x.grad.tolist()) == "[[inf, 2.0], [nan, 3.0], [5.0, 0.0]]"


def test_strided_and_repeated_numbers_are_multiplied_as_copies_are() -> None:
    x = engine.tensor(numbers((6, 40)))
    for view in (x.t(), x[:, ::3], x[1::2].t(), x[:, :1].expand(6, 9)):
        for dim in (0, 1):
            assert view.prod(dim).tolist() == view.clone().prod(dim).tolist()


def test_products_of_whole_numbers_wrap_in_int64() -> None:
    x = engine.tensor([[3] * 45, [1] * 45])
    wrapped = (3**45 + 2**63) % 2**64 - 2**63
    for dtype in (engine.int64, engine.int32, engine.uint8):
        assert x.to(dtype).prod(1).tolist() == [wrapped, 1]
        assert x.to(dtype).prod(0).tolist() == [3] * 45
    assert (x > 1).prod(1).tolist() == [1, 0]
    assert engine.ones(3, 0).prod(1).tolist() == [1.0] * 3
    assert engine.ones(0, 3, dtype=engine.int64).prod(0).tolist() == [1] * 3


def test_bfloat16_is_rounded_once() -> None:
    x = engine.tensor(numbers((4, 65))).to(engine.bfloat16)
    wide = x.to(engine.float32).prod(1).to(engine.bfloat16)
    assert x.prod(1).tolist() == wide.tolist()


WHOLE = [engine.int64, engine.int32, engine.uint8, engine.bool_]


@pytest.mark.parametrize("chosen", [None, *WHOLE, engine.float32, engine.bfloat16], ids=str)
@pytest.mark.parametrize("dtype", [*WHOLE, engine.float32, engine.bfloat16], ids=str)
def test_every_type_is_multiplied_in_every_other(
    dtype: engine.DType, chosen: engine.DType | None
) -> None:
    """Whole numbers as int64, of which the type that is asked for takes the lowest bits."""
    x = engine.tensor([[2, 3], [200, 5], [0, 1]], dtype=engine.int64).to(dtype)
    y = x.prod(1) if chosen is None else x.prod(1, dtype=chosen)
    factors = x if chosen is None else x.to(chosen)
    exact = [math.prod(row) for row in factors.tolist()]
    like = y.dtype if factors.dtype.is_floating_point else engine.int64
    assert y.dtype is (chosen or (dtype if dtype.is_floating_point else engine.int64))
    assert y.tolist() == engine.tensor(exact, dtype=like).to(y.dtype).tolist()
