"""Calls that mutation has shown to crash, to hang or to fail without words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn, optim
from gradcli.engine.nn import functional as F
from gradcli.engine.optim import lr_scheduler
from gradcli.errors import GradcliError

X = engine.ones(2, 3)
LINES = engine.ones(1, 1, 3)


def sgd() -> optim.Optimizer:
    return optim.SGD([nn.Parameter(engine.ones(2))], lr=0.1)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: nn.BatchNorm1d(3, eps=-1), "BatchNorm1d: eps must be a number >= 0, got -1"),
        (lambda: nn.BatchNorm1d(3, momentum=2.0), "momentum must be a number from 0 to 1"),
        (lambda: nn.LayerNorm(3, eps=float("nan")), "eps must be a number >= 0, got nan"),
        (lambda: nn.LSTM(3, 4, 2**40), "num_layers must be a whole number from 1 to 10000"),
        (lambda: nn.Transformer(4, 2, 2**31), "num_encoder_layers must be a whole number from 0"),
        (lambda: nn.RotaryEmbedding(4, 2**62), "no memory"),
        (lambda: nn.RotaryEmbedding(2**62, 4), "no memory"),
        (lambda: nn.ReplicationPad1d(2**60)(LINES), "no memory"),
        (lambda: F.pad(LINES, (2**60, 1), "replicate"), "no memory"),
        (lambda: optim.Adam([nn.Parameter(X)], betas=(2,)), "Adam: betas must be two numbers"),
        (lambda: sgd().add_param_group({"lr": 1.0}), "SGD: a group must be a dict with 'params'"),
        (lambda: lr_scheduler.ExponentialLR(sgd(), "x"), "ExponentialLR: gamma must be a number"),
        (
            lambda: lr_scheduler.LambdaLR(sgd(), lambda epoch: None),
            "LambdaLR: what lr_lambda gives must be a number, got None",
        ),
        (lambda: optim.clip_grad_norm_([1], 1.0), r"parameters[0] must be a Tensor, got 1"),
        (lambda: engine.frombuffer("x", dtype=engine.int32), "buffer must be a buffer of bytes"),
        (lambda: engine.capture(abs, passes=[[1]]), "capture: no pass [1]; passes are"),
        (lambda: engine.draw(X.clone().requires_grad_() * 1, names={"a": 1}), "names['a'] must be"),
        (lambda: engine.checkpoint_sequential([3], 1, X), "functions[0] must be a function"),
        (lambda: engine.checkpoint(3, X), "checkpoint: function must be a function, got 3"),
        (lambda: engine.scatter(X, 7, X, dim=0), "scatter: index must be a Tensor, got int"),
        (lambda: X[int], "getitem: cannot index with type"),
    ],
)
def test_it_is_refused_in_words(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(GradcliError) as caught:
        call()
    assert says in str(caught.value)


def test_a_power_beyond_doubles_is_an_infinite_rate() -> None:
    optimizer = sgd()
    scheduler = lr_scheduler.ExponentialLR(optimizer, 1e308)
    for _ in range(3):
        scheduler.step()
    assert scheduler.get_last_lr() == [float("inf")]


def test_more_segments_than_layers_are_one_a_layer() -> None:
    layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    y = engine.checkpoint_sequential(layers, 2**62, X.clone().requires_grad_())
    assert y.tolist() == layers(X).tolist()


def test_an_error_of_the_function_under_a_checkpoint_is_its_own() -> None:
    def function(x: engine.Tensor) -> engine.Tensor:
        raise OverflowError("mine")

    with pytest.raises(OverflowError, match="mine"):
        engine.checkpoint(function, X)


def test_a_tensor_without_dimensions_is_repeated() -> None:
    assert engine.tensor(5).repeat_interleave(3, 0).tolist() == [5, 5, 5]


def test_a_number_of_another_library_stays_outside_of_tensors() -> None:
    numpy = pytest.importorskip("numpy", reason="its numbers are asked for")
    assert type(nn.init.orthogonal_(engine.zeros(2, 2), numpy.float64(2.0))) is engine.Tensor
    assert type(nn.LeakyReLU(numpy.float64(0.5)).negative_slope) is float
