from __future__ import annotations

from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.array import empty, run
from gradcli.engine.device import cpu
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, GradcliError, OptionError, ShapeError


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.LSTM(4, 0), "LSTM: hidden_size must be a whole number >= 1"),
        (lambda: nn.LSTM(-1, 2), "input_size must be a whole number >= 0, got -1"),
        (
            lambda: nn.GRU(4, 2, num_layers=0),
            "num_layers must be a whole number from 1 to 10000",
        ),
        (
            lambda: nn.GRU(4, 2, 2, dropout=1.5),
            "GRU: dropout must be a number from 0 to 1, got 1.5",
        ),
        (lambda: nn.LSTM(4, 2, dropout=0.5), "dropout acts between layers and there is only one"),
        (lambda: nn.LSTM(4, 2, proj_size=1), "LSTM: proj_size must be 0, got 1; put a Linear"),
        (lambda: nn.RNN(4, 2, nonlinearity="gelu"), "nonlinearity must be 'tanh' or 'relu'"),
        (lambda: nn.RNNCell(4, 2, nonlinearity="gelu"), "RNNCell: nonlinearity must be"),
        (lambda: nn.GRUCell(4, 0), "GRUCell: hidden_size must be a whole number >= 1"),
    ],
)
def test_options_that_make_no_sense_are_refused(make: Any, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, s: nn.LSTM(5, 3)(x), "LSTM: input must be (steps, batch, 5) or (steps, 5), got"),
        (lambda x, s: nn.LSTM(4, 3, batch_first=True)(x, (s, s)), "h_0 must be (1, 6, 3) for"),
        (lambda x, s: nn.LSTM(4, 3, 2)(x, (s, s)), "LSTM: h_0 must be (2, 2, 3) for input"),
        (lambda x, s: nn.LSTM(4, 3)(x[0, 0]), "LSTM: input must be"),
        (lambda x, s: nn.LSTM(4, 3)(x[0:0]), "has no steps"),
        (lambda x, s: nn.GRUCell(4, 3)(x), "GRUCell: input must be (batch, 4) or (4,), got"),
        (lambda x, s: nn.GRUCell(4, 3)(x[0], s), "GRUCell: h_0 must be (2, 3), got (1, 2, 3)"),
    ],
)
def test_shapes_that_do_not_fit_are_named(call: Any, message: str) -> None:
    with pytest.raises(ShapeError) as caught:
        call(engine.zeros(6, 2, 4), engine.zeros(1, 2, 3))
    assert message in str(caught.value)


@pytest.mark.parametrize("hx", [1.0, [1.0, 2.0], "state"])
def test_states_of_a_wrong_type_are_refused(hx: Any) -> None:
    x = engine.zeros(6, 2, 4)
    with pytest.raises(DTypeError, match="LSTM: hx must be a pair of Tensors"):
        nn.LSTM(4, 3)(x, hx)
    with pytest.raises(DTypeError, match="GRU: hx must be a Tensor"):
        nn.GRU(4, 3)(x, hx)
    with pytest.raises(DTypeError, match="LSTM: input must be a Tensor"):
        nn.LSTM(4, 3)(hx)


def test_dropout_acts_between_layers_while_training_only() -> None:
    layer = nn.LSTM(4, 3, num_layers=2, dropout=0.5)
    x = engine.randn(5, 2, 4)
    assert layer(x)[0].tolist() != layer(x)[0].tolist()
    layer.eval()
    assert layer(x)[0].tolist() == layer(x)[0].tolist()


def results(make: Any, x: Tensor) -> list[bytes]:
    """Values and gradients of a layer with weights from a seed."""
    engine.manual_seed(1)
    layer = make()
    x = x.detach().requires_grad_()
    y, _ = layer(x)
    y.backward(engine.full(y.shape, 0.5))
    tensors = [y.detach(), x.grad, *(p.grad for p in layer.parameters())]
    return [bytes(t.contiguous().memoryview()) for t in tensors if t is not None]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("batch", [1, 5, 32, 100])
@pytest.mark.parametrize("hidden", [16, 40, 130])
def test_threads_do_not_change_a_bit(kind: Any, batch: int, hidden: int) -> None:
    x = engine.randn(batch, 6, 9)
    before, seen = cpu.threads(), []
    for threads in (1, 2, 4):
        cpu.set_threads(threads)
        seen.append(results(lambda: kind(9, hidden, batch_first=True), x))
    cpu.set_threads(before)
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_sample_does_not_depend_on_the_batch_around_it(kind: Any) -> None:
    engine.manual_seed(1)
    layer = kind(9, 70, batch_first=True)
    x = engine.randn(37, 6, 9)
    whole = layer(x)[0]
    for i in (0, 7, 8, 36):
        alone, _ = layer(x[i : i + 1])
        assert alone[0].tolist() == whole[i].tolist()


def test_backwards_in_time_equals_a_reversed_sequence() -> None:
    engine.manual_seed(1)
    both = nn.LSTM(4, 3, bidirectional=True)
    one = nn.LSTM(4, 3)
    state = both.state_dict()
    one.load_state_dict({name: state[f"{name}_reverse"] for name in one.state_dict()})
    x = engine.randn(5, 2, 4)
    turned = engine.stack([x[i] for i in range(4, -1, -1)])
    wanted = one(turned)[0]
    found = both(x)[0]
    assert [found[i, :, 3:].tolist() for i in range(5)] == [
        wanted[4 - i].tolist() for i in range(5)
    ]


def test_gates_may_be_written_where_their_sums_stand() -> None:
    x, w = engine.randn(4, 10, 80).array, engine.randn(80, 20).array
    none = empty((0,), x.dtype)
    found = []
    for gates in (empty(x.shape, x.dtype), x):
        y, c = empty((4, 10, 20), x.dtype), empty((5, 10, 20), x.dtype)
        run("lstm_forward", x, w, none, none, gates, y, c)
        found.append((y.tolist(), c.tolist(), gates.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_values_that_are_kept_may_not_be_overwritten(kind: Any) -> None:
    layer = kind(4, 3)
    y, _ = layer(engine.randn(5, 2, 4))
    total = y.sum()
    with engine.no_grad():
        y.zero_()
    with pytest.raises(GradcliError, match="changed in place"):
        total.backward()
