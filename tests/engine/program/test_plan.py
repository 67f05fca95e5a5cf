"""The arena: results take the place of inputs that nobody needs any more, and no other place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from replays import program, pure

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.device.kernels import FACTS
from gradcli.engine.program import plan

SIDE = 64
NBYTES = SIDE * SIDE * 4
engine.manual_seed(2)
X = engine.randn(SIDE, SIDE)


def arena(step: Any) -> int:
    """In tensors of the size of X."""
    nbytes = program(pure(step), X, passes=()).arena_bytes
    assert nbytes % NBYTES == 0
    return nbytes // NBYTES


def twice_read(x: Any) -> Any:
    y = x * 2
    return (y.exp() + y).exp()


def read_by_two_at_once(x: Any) -> Any:
    y = x * 2
    return y.exp() + y.sigmoid()


def transposed(x: Any) -> Any:
    y = x * 2
    return (y + y.t()).exp()


def both_ways(x: Any) -> Any:
    y = x * 2
    return (y * y).exp()


def broadcast(x: Any) -> Any:
    return (x[0] * 2 + x).exp()[0]


@pytest.mark.parametrize(
    ("step", "tensors"),
    [
        (lambda x: x.exp(), 0),
        (lambda x: ((x * 2).exp() + 1).sigmoid(), 1),
        (lambda x: (x * 2).exp().double().exp()[0], 3),
        (twice_read, 2),
        (read_by_two_at_once, 3),
        (transposed, 2),
        (both_ways, 1),
    ],
)
def test_a_result_takes_the_place_of_an_input_that_ends(step: Any, tensors: int) -> None:
    assert arena(step) == tensors


def test_a_row_that_meets_all_rows_keeps_its_place() -> None:
    assert program(pure(broadcast), X, passes=()).arena_bytes == NBYTES + SIDE * 4


@pytest.mark.parametrize(("kind", "gates"), [(nn.LSTM, 4), (nn.GRU, 3), (nn.RNN, 1)])
@pytest.mark.parametrize("batch_first", [False, True])
def test_gates_take_the_place_of_their_sums(
    kind: Any, gates: int, batch_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.manual_seed(1)
    layer = kind(5, 48, batch_first=batch_first)

    def trained(x: Any) -> Any:
        layer.zero_grad()
        loss = layer(x)[0].exp().sum()
        loss.backward()
        return (loss.detach(), *(p.grad for p in layer.parameters()))

    @engine.no_grad
    def evaluated(x: Any) -> Any:
        return layer(x)[0].exp().sum()

    x = engine.randn(20, 30, 5)
    steps = (trained, evaluated)
    less = [program(pure(step), x).arena_bytes for step in steps]
    apart = {
        name: facts if facts.elementwise else replace(facts, in_place=())
        for name, facts in FACTS.items()
    }
    monkeypatch.setattr(plan, "FACTS", apart)
    more = [program(pure(step), x).arena_bytes for step in steps]
    assert more[0] >= less[0]
    assert more[1] - less[1] >= 20 * 30 * 48 * gates * 4
