"""The pass `ends`: chains read bfloat16 and write it, with the bits of the copies they replace."""

from __future__ import annotations

import math
from typing import Any

import pytest
from replays import kernels, program, pure

from gradcli import engine

HALF = engine.bfloat16


def drawn(*shape: int, seed: int) -> Any:
    """Numbers in bfloat16, with what is not finite among them."""
    x = engine.randn(*shape, generator=engine.Generator(seed)).to(HALF)
    for place, value in enumerate((math.nan, math.inf, -math.inf, 1e-40, 3.39e38)):
        x.view(-1)[(place * 7) % x.numel()] = value
    return x


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (7, 33), (5, 1000), (3, 20001)])
def test_a_chain_reads_and_writes_bfloat16(shape: tuple[int, int]) -> None:
    x, y = drawn(*shape, seed=1), drawn(*shape, seed=2)
    row, column = drawn(shape[1], seed=3), drawn(shape[0], 1, seed=4)

    def step(x: Any) -> Any:
        a = x.float() * y.float() + row.float()
        b = (a * column.float()).exp()
        return a.bfloat16(), b.bfloat16(), (b - 1.0)

    made = program(pure(step), x)
    assert "chain" in [call.kernel for call in made.calls]
    if min(shape) > 4:
        types = {view.dtype for call in made.calls for view in call.views if call.kernel == "chain"}
        assert types == {HALF, engine.float32}


def test_one_row_between_two_copies_is_one_call() -> None:
    step = pure(lambda x: x.float().exp().bfloat16())
    assert kernels(step, drawn(6, 70, seed=1)) == ["chain"]
