"""Products of bfloat16 where the processor multiplies pairs: right, and the same bits always."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import Tensor
from gradcli.engine.array import Array, empty
from gradcli.engine.device import cpu
from gradcli.engine.device.program import plan_call
from gradcli.engine.nn import functional as F

HALF = engine.bfloat16


@pytest.fixture(autouse=True)
def pairs() -> Iterator[None]:
    before = cpu.isa()
    if not cpu.set_isa("avx512bf16"):
        pytest.skip("this machine has no avx512bf16")
    yield
    cpu.set_isa(before)


def drawn(*size: int, seed: int = 1) -> Tensor:
    return engine.randn(*size, generator=engine.Generator(seed)).to(HALF)


def bits(x: Tensor) -> bytes:
    return bytes(x.contiguous().memoryview())


def assert_product(a: Tensor, b: Tensor, made: Tensor, start: Tensor | None = None) -> None:
    """Within the rounding of float32 sums, and of the result to 8 bits of mantissa."""
    left, right = a.to(engine.float64), b.to(engine.float64)
    exact, size = left @ right, left.abs() @ right.abs()
    if start is not None:
        exact, size = exact + start.to(engine.float64), size + start.to(engine.float64).abs()
    bound = exact.abs() * 2.0**-8 + size * a.shape[-1] * 2.0**-23 + 1e-30
    assert made.dtype is HALF and made.shape == exact.shape
    assert bool(((made.to(engine.float64) - exact).abs() <= bound).all())


@pytest.mark.parametrize("k", [1, 2, 7, 64, 301, 1030])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 35), (13, 1), (12, 32), (33, 70), (2, 300)])
def test_a_product_of_any_shape_and_strides_is_right(m: int, n: int, k: int) -> None:
    for a in (drawn(m, k), drawn(k, m).T, drawn(2 * m, 3 * k)[::2, ::3]):
        for b in (drawn(k, n, seed=2), drawn(n, k, seed=2).T, drawn(k, 2 * n, seed=2)[:, ::2]):
            assert_product(a, b, a @ b)


def turned(x: Tensor) -> Tensor:
    """The same numbers, in memory the other way round."""
    return x.mT.contiguous().mT


@pytest.mark.parametrize(
    "shape", [(1, 250, 257, 33), (1, 131, 130, 129), (3, 90, 100, 140), (1, 30, 70, 1100)]
)
def test_neither_memory_nor_threads_show_in_the_bits(shape: tuple[int, int, int, int]) -> None:
    batch, m, k, n = shape
    a, b, threads = drawn(batch, m, k), drawn(batch, k, n, seed=2), cpu.threads()
    wanted = bits(a @ b)
    for number in (1, 2, 3):
        cpu.set_threads(number)
        for left in (a, turned(a)):
            for right in (b, turned(b)):
                assert bits(left @ right) == wanted
    cpu.set_threads(threads)
    alone = a[:1, 5:6] @ b[:1, :, 7:8]
    assert bits(alone) == bits((a @ b)[:1, 5:6, 7:8])


def test_pairs_that_lie_side_by_side_are_read_where_they_are() -> None:
    left, right = drawn(5, 8).unsqueeze(0), drawn(7, 8, seed=2).T.unsqueeze(0)
    none, out = empty((0,), HALF), empty((1, 5, 7), HALF)
    for batch_step in (0, 1, 40):  # of one matrix it says nothing
        a = Array(left.array.storage, 0, (1, 5, 8), (batch_step, 8, 1), HALF)
        assert plan_call("matmul", [a, right.array, none, out], (), ()).shared_bytes == 0
    turned_left = turned(left).array
    assert plan_call("matmul", [turned_left, right.array, none, out], (), ()).shared_bytes > 0


def test_a_matrix_that_is_repeated_serves_the_whole_batch() -> None:
    a, b = drawn(3, 5, 7), drawn(7, 4, seed=2)
    assert bits(engine.matmul(a, b.expand((3, 7, 4)))) == bits(engine.stack([one @ b for one in a]))


@pytest.mark.parametrize("shape", [(3, 5, 4), (40, 33, 70), (300, 64, 9), (1, 9, 65)])
def test_a_bias_is_where_sums_begin(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    x, weight, bias = drawn(m, k), drawn(n, k, seed=2), drawn(n, seed=3)
    assert_product(x, weight.T, F.linear(x, weight, bias), bias)


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_products_of_nothing(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    assert (drawn(m, k) @ drawn(k, n)).tolist() == engine.zeros(m, n).tolist()


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_stays_in_its_row(value: float) -> None:
    a, b = drawn(14, 6).abs(), drawn(6, 33, seed=2).abs() + 1
    a[3, 2] = value  # beside a number: as one float the pair would be a NaN
    made: Any = (a @ b).float()
    assert made[3].tolist() == pytest.approx([value] * 33, nan_ok=True)
    assert bool(made[:3].isfinite().all()) and bool(made[4:].isfinite().all())


def test_gradients_are_products_of_pairs_too() -> None:
    x, w = (engine.randn(9, 6).to(HALF).requires_grad_(), drawn(6, 11).requires_grad_())
    y = x @ w
    y.backward(drawn(9, 11, seed=4))
    assert x.grad is not None and w.grad is not None
    assert_product(drawn(9, 11, seed=4), w.detach().T, x.grad)
    assert_product(x.detach().T, drawn(9, 11, seed=4), w.grad)


def test_other_instruction_sets_give_nearly_the_same() -> None:
    a, b = drawn(65, 300), drawn(300, 40, seed=2)
    made = a @ b
    cpu.set_isa("baseline")
    assert_product(a, b, a @ b)
    assert not cpu.multiplies_bfloat16()
    off = (made.float() - (a @ b).float()).abs().max().item()
    assert 0 <= off <= 2.0**-7 * made.float().abs().max().item()
