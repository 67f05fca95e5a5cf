"""Sampler: the tokens that plain Python would pick, row by row, replayed or not."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import Tensor
from gradcli.engine.nn.sampling import TokenSampler, pick
from gradcli.errors import GradcliError, NumericsError

WAYS: list[dict[str, Any]] = [
    {},
    {"temperature": 0},
    {"temperature": 0.3},
    {"temperature": 5.0, "top_p": 1.0},
    {"top_k": 1},
    {"top_k": 7},
    {"top_p": 0.5},
    {"top_k": 100, "top_p": 0.9},
]


def picked_in_python(
    logits: list[float],
    draw: float,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
) -> int:
    """The definition: walk down the probabilities until the draw is used up."""
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))[:top_k]
    if temperature == 0:
        return order[0]
    weights = [math.exp((logits[i] - logits[order[0]]) / temperature) for i in order]
    total, count = math.fsum(weights), 1
    while math.fsum(weights[:count]) < top_p * total and count < len(weights):
        count += 1
    left = draw * math.fsum(weights[:count])
    for token, weight in zip(order, weights[:count], strict=False):
        left -= weight
        if left < 0:
            return token
    return order[count - 1]


def some_logits(vocabulary: int, rows: int = 1) -> Tensor:
    """Rounded, so that some are equal."""
    return (engine.randn(rows, 1, vocabulary) * 8).round() / 2


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("vocabulary", [2, 60, 500])
@pytest.mark.parametrize("captured", [False, True])
def test_picks_are_those_of_the_definition(
    way: dict[str, Any], vocabulary: int, captured: bool
) -> None:
    engine.manual_seed(1)
    draws = engine.Generator(4, purpose="text")
    sampler = TokenSampler([engine.Generator(4, purpose="text")], **way, captured=captured)
    for _ in range(40):
        logits = some_logits(vocabulary)
        draw = 0.0
        if sampler.temperature:
            draw = engine.rand(1, dtype=engine.float64, generator=draws).item()
        assert sampler(logits).item() == picked_in_python(logits.flatten().tolist(), draw, **way)


def test_of_fifty_thousand_tokens_the_same_are_picked() -> None:
    engine.manual_seed(1)
    logits = engine.randn(1, 1, 50257)
    draw = engine.rand(1, dtype=engine.float64, generator=engine.Generator(2)).item()
    found = TokenSampler([engine.Generator(2)])(logits).item()
    assert found == picked_in_python(logits.flatten().tolist(), draw)


@pytest.mark.parametrize("way", [*WAYS, {"repetition_penalty": 1.7}], ids=str)
@pytest.mark.parametrize("captured", [False, True])
def test_a_row_is_picked_as_if_it_were_alone(way: dict[str, Any], captured: bool) -> None:
    engine.manual_seed(1)
    together = TokenSampler([engine.Generator(seed) for seed in range(3)], **way, captured=captured)
    alone = [TokenSampler([engine.Generator(seed)], **way) for seed in range(3)]
    for sampler in (together, *alone):
        sampler.see([1, 4])
    for _ in range(10):
        logits = some_logits(30, rows=3)
        rows = [one(logits[i : i + 1]).item() for i, one in enumerate(alone)]
        assert together(logits).tolist() == [[token] for token in rows]


def test_tokens_that_were_seen_are_less_likely() -> None:
    logits = engine.tensor([[[2.0, -1.0, 1.5, -1.5]]])
    sampler = TokenSampler(temperature=0, repetition_penalty=2.0)
    sampler.see([0])
    assert sampler(logits).item() == 2  # of 1.0, -1.0, 1.5, -1.5
    assert sampler(logits).item() == 0  # of 1.0, -1.0, 0.75, -1.5
    below = engine.tensor([[[-1.0, -1.5]]])
    assert TokenSampler(temperature=0, repetition_penalty=2.0)(below).item() == 0
    sampler = TokenSampler(temperature=0, repetition_penalty=2.0)
    sampler.see([0])
    assert sampler(below).item() == 1  # -2.0, -1.5


def test_one_row_that_is_not_finite_is_refused() -> None:
    logits = engine.zeros(2, 1, 3)
    logits[1, 0, 2] = math.inf
    for captured in (False, True):
        sampler = TokenSampler([None, None], captured=captured)
        for _ in range(3):
            with pytest.raises(NumericsError, match="not all finite"):
                sampler(logits)


@pytest.mark.parametrize("penalty", [0, -1.0, math.nan, math.inf])
def test_a_penalty_that_is_none_is_refused(penalty: float) -> None:
    with pytest.raises(GradcliError, match="repetition_penalty must be above 0, got"):
        TokenSampler(repetition_penalty=penalty)


def test_one_pick_is_that_of_a_sampler() -> None:
    logits = engine.tensor([0.5, 2.0, 1.0, 1.5])
    assert pick(logits, generator=engine.Generator(6)) == picked_in_python(
        logits.tolist(), engine.rand(1, dtype=engine.float64, generator=engine.Generator(6)).item()
    )
