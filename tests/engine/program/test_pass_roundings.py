"""The pass `roundings`: what is only stored in bfloat16 stays float32, rounded to it."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from replays import ALL, kernels, program, pure

from gradcli import engine
from gradcli.engine.array import Array, empty, run
from gradcli.engine.device import cpu
from gradcli.engine.program.record import Call
from gradcli.engine.tensor import Tensor

ONLY = ["roundings"]
HALF = engine.bfloat16
engine.manual_seed(7)
X = engine.randn(6, 10)


def halves(calls: list[Call]) -> int:
    return sum(view.dtype is HALF for call in calls for view in call.views)


def test_a_rounding_between_two_calls_is_one_row_of_either() -> None:
    step = pure(lambda x: (x.exp().bfloat16() * 3.0).float())
    assert kernels(step, X, passes=()).count("copy") == 4
    assert halves(program(step, X, passes=ONLY).calls) == 0
    assert kernels(step, X) == ["chain"]


@pytest.fixture
def floats_alone() -> Iterator[None]:
    """An instruction set without products of bfloat16."""
    before = cpu.isa()
    cpu.set_isa("baseline")
    yield
    cpu.set_isa(before)


@pytest.mark.usefixtures("floats_alone")
def test_a_product_ends_with_the_rounding() -> None:
    w = engine.randn(10, 4)

    def step(x: Any) -> Any:
        with engine.autocast():
            y = x @ w
        return y.float()

    made = program(pure(step), X)
    assert [call.kernel for call in made.calls] == ["bfloat16", "bfloat16", "matmul_then"]
    assert halves(made.calls) == 0


def test_results_that_are_bfloat16_are_stored_so() -> None:
    made = program(pure(lambda x: (x.bfloat16() + 1.0, x.bfloat16())), X)
    assert [view.dtype for call in made.calls for view in call.outputs].count(HALF) == 2


def test_arguments_and_parameters_in_bfloat16_are_read_as_they_are() -> None:
    w = engine.randn(10).bfloat16()
    made = program(pure(lambda x: (x * w).float().sum()), X.bfloat16())
    assert halves(made.calls) == 2  # each is widened once
    assert [call.kernel for call in made.calls].count("bfloat16") in (0, 1)  # of the product


def test_what_is_written_in_parts_and_turned_has_the_same_bits() -> None:
    def step(x: Any) -> Any:
        half = x.bfloat16()
        beside = engine.cat([half, half * 2.0, half[:, :3]], 1)
        turned = (beside.t() * 0.3).t().contiguous()
        return turned.float(), (turned[::2] + beside[::2, :1]).float()

    for passes in (ONLY, ALL):
        assert halves(program(pure(step), X, passes=passes).calls) == 0


@pytest.mark.parametrize("value", [0.0, 1 / 3, -2.5, math.inf, 3.4028234663852886e38])
def test_what_is_filled_is_rounded_too(value: float) -> None:
    step = pure(lambda x: (engine.full((10,), value, dtype=HALF) + x.bfloat16()).float())
    program(step, X, passes=ONLY)
    program(step, X)


def test_whole_numbers_become_rounded_float32() -> None:
    counts = engine.tensor([1, 257, 65793, -(2**31) + 1])
    step = pure(lambda x: (x.bfloat16() * 1.0).float())
    assert halves(program(step, counts, passes=ONLY).calls) == 0
    program(step, counts)


@pytest.mark.usefixtures("floats_alone")
def test_a_gradient_of_float32_parameters_is_rounded_where_it_is_made() -> None:
    w = engine.randn(10, 4).requires_grad_()

    def step(x: Any) -> Any:
        w.grad = None
        with engine.autocast():
            loss = (x @ w).sum()
        loss.backward()
        assert w.grad is not None
        return w.grad * 1.0

    assert halves(program(pure(step), X).calls) == 0


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("dtype", [engine.float32, engine.float64], ids=str)
def test_the_row_rounds_as_copies_do(dtype: Any) -> None:
    bits = [(high << 16) | low for high in range(0, 1 << 16, 37) for low in (0, 1, 0x7FFF, 0x8000)]
    bits += [(high << 16) | 0x8001 for high in range(0, 1 << 16, 37)]
    data = bytearray(struct.pack(f"={len(bits)}I", *bits))
    x = engine.frombuffer(data, dtype=engine.float32).to(dtype)
    out: Array = empty(x.shape, dtype)
    run("bfloat16", x.array, out)
    wanted = x.bfloat16().to(dtype)
    assert bytes(Tensor(out).memoryview()) == bytes(wanted.memoryview())
