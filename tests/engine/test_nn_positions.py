from __future__ import annotations

import cmath
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.nn import functional as F
from gradcli.errors import GradcliError


def turned(row: list[float], step: int, base: float, interleaved: bool) -> list[float]:
    """The pairs of a row as complex numbers, each times exp(i angle)."""
    half = len(row) // 2
    out = [0.0] * len(row)
    for i in range(half):
        at = (2 * i, 2 * i + 1) if interleaved else (i, i + half)
        angle = step * base ** (-2 * i / len(row))
        z = complex(row[at[0]], row[at[1]]) * cmath.exp(1j * angle)
        out[at[0]], out[at[1]] = z.real, z.imag
    return out


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("offset", [0, 3])
def test_rotary_positions_turn_each_pair_by_its_angle(interleaved: bool, offset: int) -> None:
    engine.manual_seed(0)
    x = engine.randn(2, 3, 5, 6, dtype=engine.float64)
    layer = nn.RotaryEmbedding(6, 9, base=50.0, interleaved=interleaved, dtype=engine.float64)
    found = layer(x, offset)
    for sample, made in zip(x.tolist(), found.tolist(), strict=True):
        for head, made_head in zip(sample, made, strict=True):
            wanted = [turned(row, offset + i, 50.0, interleaved) for i, row in enumerate(head)]
            for row, wanted_row in zip(made_head, wanted, strict=True):
                assert row == pytest.approx(wanted_row, abs=1e-12)


@pytest.mark.parametrize("interleaved", [True, False])
def test_products_of_turned_rows_depend_on_their_distance_only(interleaved: bool) -> None:
    engine.manual_seed(0)
    q, k = engine.randn(2, 1, 8, dtype=engine.float64).unbind(0)
    layer = nn.RotaryEmbedding(8, 100, interleaved=interleaved, dtype=engine.float64)
    products = [(layer(q, 40 + i) @ layer(k, i).mT).item() for i in (0, 1, 17, 59)]
    assert products == pytest.approx([products[0]] * 4, abs=1e-12)
    assert abs(products[0] - (q @ k.mT).item()) > 1e-3


@pytest.mark.parametrize("interleaved", [True, False])
def test_the_gradient_of_a_turn_is_the_turn_back(interleaved: bool) -> None:
    x = engine.randn(3, 4, dtype=engine.float64).requires_grad_()
    layer = nn.RotaryEmbedding(4, 3, interleaved=interleaved, dtype=engine.float64)
    y = layer(x)
    y.backward(y.detach())
    difference = (x.grad - x.detach()).abs().amax().item()
    assert difference < 1e-12


def test_rotary_positions_are_not_saved() -> None:
    assert list(nn.RotaryEmbedding(4, 3).state_dict()) == []


def test_learnt_positions_are_added_step_by_step() -> None:
    engine.manual_seed(0)
    layer = nn.Positions(5, 3)
    x = engine.randn(2, 2, 3)
    found = layer(x)
    assert found.tolist() == (x + layer.weight[:2]).tolist()
    found.sum().backward()
    assert layer.weight.grad.sum(1).tolist() == [6.0, 6.0, 0.0, 0.0, 0.0]
    assert 0 < layer.weight.abs().amax().item() < 0.1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.RotaryEmbedding(5, 3), "dim must be an even number from 2 on, got 5"),
        (lambda: nn.RotaryEmbedding(4, 0), "max_steps must be a whole number >= 1"),
        (lambda: nn.RotaryEmbedding(4, 3)(engine.zeros(4, 4)), "steps 0 to 3 are outside the 3"),
        (lambda: nn.RotaryEmbedding(4, 3)(engine.zeros(2, 6)), "cos and sin must be (2, 3)"),
        (lambda: nn.RotaryEmbedding(4, 3)(engine.zeros(4)), "must be (..., steps, numbers)"),
        (lambda: nn.Positions(0, 3), "max_steps must be a whole number >= 1"),
        (lambda: nn.Positions(4, 3)(engine.zeros(5, 3)), "steps 0 to 4 are outside the 4"),
        (lambda: nn.Positions(4, 3)(engine.zeros(2, 4)), "must be (..., steps, 3), got (2, 4)"),
        (
            lambda: F.rotary_embedding(engine.zeros(2, 3), engine.zeros(2, 1), engine.zeros(2, 1)),
            "an even number), got (2, 3)",
        ),
    ],
)
def test_positions_that_make_no_sense_are_refused(call: Any, message: str) -> None:
    with pytest.raises(GradcliError) as caught:
        call()
    assert message in str(caught.value)
