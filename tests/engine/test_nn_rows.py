"""Layers behind an Embedding multiply its table, not each row that was picked from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import pytest
from short_ways import close_short_ways

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.device import cpu
from gradcli.engine.tensor import Tensor


@contextmanager
def products(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The rows of the left matrix in each product."""
    seen: list[int] = []
    plain = cpu.run

    def watched(kernel: str, descriptors: Any, *rest: Any) -> None:
        if kernel == "matmul":
            seen.append(descriptors[0].shape[1])
        plain(kernel, descriptors, *rest)

    with monkeypatch.context() as patch:
        close_short_ways(patch)
        patch.setattr(cpu, "run", watched)
        yield seen


def model() -> tuple[nn.Embedding, nn.LSTM, Tensor]:
    engine.manual_seed(2)
    made = nn.Embedding(7, 4, dtype=engine.float64), nn.LSTM(4, 3, batch_first=True).double()
    return *made, engine.randint(0, 7, (5, 6))


def test_the_input_of_an_lstm_is_multiplied_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    table, lstm, indices = model()
    with products(monkeypatch) as seen:
        lstm(table(indices))
    assert seen == [7]


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows * 1,
        lambda rows: copy(rows),
        lambda rows: rows.detach(),
        lambda rows: rows.detach().requires_grad_(),
    ],
)
def test_anything_but_the_rows_themselves_is_multiplied_row_by_row(
    monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    table, lstm, indices = model()
    rows = change(table(indices))
    with products(monkeypatch) as seen:
        lstm(rows)
    assert seen == [30]


@pytest.mark.parametrize("what", ["rows", "indices", "table"])
def test_what_was_changed_in_place_is_multiplied_as_it_is(what: str) -> None:
    table, lstm, indices = model()
    with engine.no_grad():
        rows = table(indices)
        changed = {"rows": rows, "indices": indices, "table": table.weight}[what]
        changed.fill_(1)
        assert lstm(rows)[0].tolist() == lstm(rows.clone())[0].tolist()


def test_a_gradient_asked_of_the_rows_arrives_there() -> None:
    table, lstm, indices = model()
    table.requires_grad_(False)
    rows = table(indices).requires_grad_()
    lstm(rows)[0].sum().backward()
    assert rows.grad is not None
    assert rows.grad.shape == (5, 6, 4)


@pytest.mark.parametrize(
    ("vocabulary", "samples", "multiplied"), [(60, 5, 30), (7, 2, 12), (6, 2, 6)]
)
def test_a_table_of_more_than_half_of_what_was_picked_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, vocabulary: int, samples: int, multiplied: int
) -> None:
    table, lstm = nn.Embedding(vocabulary, 4), nn.LSTM(4, 3, batch_first=True)
    with products(monkeypatch) as seen:
        lstm(table(engine.randint(0, vocabulary, (samples, 6))))
    assert seen == [multiplied]


def test_a_row_without_gradient_keeps_having_none() -> None:
    engine.manual_seed(2)
    table, lstm = nn.Embedding(3, 4, padding_idx=1), nn.LSTM(4, 3, batch_first=True)
    lstm(table(engine.randint(0, 3, (5, 6))))[0].sum().backward()
    assert table.weight.grad is not None
    assert table.weight.grad[1].tolist() == [0.0] * 4
    assert table.weight.grad[0].tolist() != [0.0] * 4


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_values_are_the_same_and_gradients_equal_up_to_rounding(
    kind: Any, bidirectional: bool
) -> None:
    found = []
    for plain in (False, True):
        engine.manual_seed(2)
        table = nn.Embedding(7, 4, dtype=engine.float64)
        layer = kind(4, 3, batch_first=True, bidirectional=bidirectional).double()
        rows = table(engine.randint(0, 7, (5, 6)))
        y, _ = layer(rows * 1 if plain else rows)
        (y * y).sum().backward()
        found.append((y.tolist(), [table.weight.grad, *(p.grad for p in layer.parameters())]))
    (y, grads), (plain_y, plain_grads) = found
    assert y == plain_y
    for grad, other in zip(grads, plain_grads, strict=True):
        assert grad is not None
        assert other is not None
        assert (grad - other).abs().max().item() < 1e-12


def test_other_users_of_the_rows_get_their_share_of_the_gradient() -> None:
    table, lstm, indices = model()
    grads = []
    for plain in (False, True):
        table.zero_grad()
        rows = table(indices)
        (lstm(rows * 1 if plain else rows)[0].sum() + (rows * rows).sum()).backward()
        grads.append(table.weight.grad)
    assert (grads[0] - grads[1]).abs().max().item() < 1e-12  # type: ignore[operator]


def test_a_captured_step_has_the_bits_of_an_eager_one() -> None:
    def trained(captured: bool) -> list[Any]:
        table, lstm, indices = model()
        parameters = [*table.parameters(), *lstm.parameters()]
        adam = engine.optim.Adam(parameters, lr=0.1)

        def step() -> Tensor:
            adam.zero_grad()
            loss: Tensor = lstm(table(indices))[0].sum()
            loss.backward()
            adam.step()
            return loss

        run = engine.capture(step) if captured else step
        return [run().item() for _ in range(6)] + [p.tolist() for p in parameters]

    assert trained(captured=True) == trained(captured=False)
