"""matmul_then: a product and the elementwise call after it, with the bits of the two calls."""

from __future__ import annotations

import math
from typing import Any

import pytest
from test_calls import status, tensor

from gradcli import engine
from gradcli.engine.array import Array, empty, run
from gradcli.engine.device import cpu
from gradcli.engine.device.cpu import KERNELS
from gradcli.engine.device.kernels import FACTS, lib

SLOPES = sorted(name for name, facts in FACTS.items() if facts.saved)
PLAIN = [*SLOPES, "floor", "ceil", "sign", "neg", "abs"]
SHAPES = [(1, 1, 1, 1), (1, 13, 300, 17), (3, 7, 5, 10), (1, 65, 33, 290), (2, 30, 0, 9)]
P, Q = 0.25, 1.5


def normal(shape: tuple[int, ...], dtype: Any, scale: float = 1.0) -> Any:
    numbers = [
        scale * (math.sin(1.7 * i) + math.cos(0.31 * i * i)) for i in range(math.prod(shape))
    ]
    return engine.tensor(numbers, dtype=dtype).reshape(shape).array


def bits(x: Array) -> bytes:
    return bytes(engine.Tensor(x).memoryview())


def operands(shape: tuple[int, int, int, int], dtype: Any) -> tuple[Array, Array, Array]:
    batch, m, k, n = shape
    bias = normal((n,), dtype)
    return normal((batch, m, k), dtype, 0.3), normal((batch, k, n), dtype), bias


def fused(f: str, a: Array, b: Array, bias: Array, kept: Array, pre: Array) -> Array:
    out = empty((*a.shape[:2], b.shape[2]), a.dtype)
    run("matmul_then", a, b, bias, kept, pre, out, sizes=(KERNELS[f],), options=(P, Q))
    return out


def product(a: Array, b: Array, bias: Array) -> Array:
    out = empty((*a.shape[:2], b.shape[2]), a.dtype)
    run("matmul", a, b, bias, out)
    return out


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("f", PLAIN)
def test_a_function_has_the_bits_of_the_call_that_would_follow(f: str) -> None:
    for dtype in (engine.float32, engine.float64):
        for shape in SHAPES:
            a, b, bias = operands(shape, dtype)
            nothing = empty((0,), dtype)
            for start in (bias, nothing):
                x = product(a, b, start)
                y, pre = empty(x.shape, dtype), empty(x.shape, dtype)
                run(f, x, y, options=(P, Q))
                assert bits(fused(f, a, b, start, nothing, nothing)) == bits(y)
                assert bits(fused(f, a, b, start, nothing, pre)) == bits(y)
                assert bits(pre) == bits(x)


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("f", SLOPES)
def test_a_slope_has_the_bits_of_the_call_that_would_follow(f: str) -> None:
    slope = f"{f}_backward"
    for dtype in (engine.float32, engine.float64):
        for shape in SHAPES:
            a, b, _ = operands(shape, dtype)
            nothing = empty((0,), dtype)
            grad = product(a, b, nothing)
            kept, out = normal(grad.shape, dtype), empty(grad.shape, dtype)
            run(slope, kept, grad, out, options=(P, Q))
            assert bits(fused(slope, a, b, nothing, kept, nothing)) == bits(out)
            pre = empty(grad.shape, dtype)
            assert bits(fused(slope, a, b, nothing, kept, pre)) == bits(out)
            assert bits(pre) == bits(grad)


@pytest.mark.parametrize("f", ["relu", "clamp", "gelu", "sign"])
def test_nan_comes_through(f: str) -> None:
    a, b, bias = operands((1, 20, 40, 50), engine.float32)
    row = engine.Tensor(a).clone()
    row[0, 7, 3] = math.nan
    out = engine.Tensor(fused(f, row.array, b, bias, empty((0,), a.dtype), empty((0,), a.dtype)))
    for i in (0, 6, 7, 8):
        assert {math.isnan(v) for v in out[0, i].tolist()} == {i == 7}


def test_a_matrix_and_its_transposed_view_agree() -> None:
    a, b, bias = operands((1, 33, 70, 45), engine.float32)
    turned = engine.Tensor(b).permute((0, 2, 1)).contiguous().permute((0, 2, 1)).array
    nothing = empty((0,), a.dtype)
    assert bits(fused("tanh", a, turned, bias, nothing, nothing)) == bits(
        fused("tanh", a, b, bias, nothing, nothing)
    )


def test_threads_do_not_change_the_bits() -> None:
    a, b, bias = operands((1, 300, 90, 280), engine.float32)
    before, seen = cpu.threads(), set()
    for threads in (1, 2, 3):
        cpu.set_threads(threads)
        seen.add(bits(fused("gelu", a, b, bias, empty((0,), a.dtype), empty((0,), a.dtype))))
    cpu.set_threads(before)
    assert len(seen) == 1


def call(f: int, **changed: list[int]) -> int:
    shapes = {
        "a": [2, 3, 4],
        "b": [2, 4, 5],
        "bias": [5],
        "kept": [0],
        "pre": [0],
        "out": [2, 3, 5],
    }
    return status("matmul_then", *map(tensor, (shapes | changed).values()), sizes=[f])


def test_only_a_unary_kernel_may_follow() -> None:
    relu, slope = KERNELS["relu"], KERNELS["relu_backward"]
    assert call(relu) == lib.GC_OK
    assert call(relu, pre=[2, 3, 5]) == lib.GC_OK
    assert call(slope, kept=[2, 3, 5]) == lib.GC_OK
    for name in ("add", "eq", "pow_backward_a", "matmul", "matmul_then", "copy"):
        assert call(KERNELS[name]) == lib.GC_BAD_SHAPE
    for number in (-1, len(KERNELS), 2**31, 2**32 + relu, -(2**63)):
        assert call(number) == lib.GC_BAD_SHAPE


def test_tensors_that_do_not_fit_are_refused() -> None:
    relu, slope = KERNELS["relu"], KERNELS["relu_backward"]
    assert call(slope) == lib.GC_BAD_SHAPE
    assert call(slope, kept=[2, 5, 3]) == lib.GC_BAD_SHAPE
    assert call(relu, kept=[2, 3, 5]) == lib.GC_BAD_SHAPE
    assert call(relu, pre=[30]) == lib.GC_BAD_SHAPE
    assert call(relu, bias=[4]) == lib.GC_BAD_SHAPE
    assert call(relu, out=[2, 5, 3]) == lib.GC_BAD_SHAPE


def test_an_output_never_lies_in_an_input() -> None:
    """Elementwise calls may overwrite what they read; a product reads it again."""
    square, own, nothing = tensor([1, 4, 4]), tensor([1, 4, 4]), tensor([0])
    slope = [KERNELS["relu_backward"]]
    for outputs in ((square, own), (own, square)):
        tensors = (tensor([1, 4, 4]), tensor([1, 4, 4]), nothing, square, *outputs)
        assert status("matmul_then", *tensors, sizes=slope) == lib.GC_BAD_SHAPE
        tensors = (square, tensor([1, 4, 4]), nothing, tensor([1, 4, 4]), *outputs)
        assert status("matmul_then", *tensors, sizes=slope) == lib.GC_BAD_SHAPE
    assert status("matmul", square, own, nothing, square) == lib.GC_BAD_SHAPE
