"""Layers on sequences (steps x features): LSTM, GRU, the plain one. See layers.py for the form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from gradcli.config.signal import Fitted, Signal, floats
from gradcli.engine.kind import Count, Share
from gradcli.errors import ShapeError

if TYPE_CHECKING:
    from gradcli.engine import nn


def lstm(
    x: Signal,
    out: Count,
    *,
    depth: Count = 1,
    bidirectional: bool = False,
    last: bool = False,
    dropout: Share = 0.0,
    bias: bool = True,
) -> Fitted:
    """Long short-term memory: a state of `out` numbers after each step, or after the last."""
    options = {"bias": bias, "dropout": dropout, "bidirectional": bidirectional}
    return _recurrent("LSTM", 4, x, out, depth, last, options)


def gru(
    x: Signal,
    out: Count,
    *,
    depth: Count = 1,
    bidirectional: bool = False,
    last: bool = False,
    dropout: Share = 0.0,
    bias: bool = True,
) -> Fitted:
    """Gated recurrent unit: a state of `out` numbers after each step, or after the last."""
    options = {"bias": bias, "dropout": dropout, "bidirectional": bidirectional}
    return _recurrent("GRU", 3, x, out, depth, last, options)


def rnn(
    x: Signal,
    out: Count,
    *,
    nonlinearity: Literal["tanh", "relu"] = "tanh",
    depth: Count = 1,
    bidirectional: bool = False,
    last: bool = False,
    dropout: Share = 0.0,
    bias: bool = True,
) -> Fitted:
    """The plain recurrent layer: a state of `out` numbers after each step, or after the last."""
    options = {"bias": bias, "dropout": dropout, "bidirectional": bidirectional}
    return _recurrent("RNN", 1, x, out, depth, last, {**options, "nonlinearity": nonlinearity})


def _recurrent(
    kind: str, gates: int, x: Signal, out: int, depth: int, last: bool, options: dict[str, Any]
) -> Fitted:
    if len(floats(x).shape) != 2:
        raise ShapeError(f"needs sequences (steps x features), got {x}")
    if options["dropout"] and depth == 1:
        raise ShapeError("dropout acts between layers and depth is 1; put a dropout layer behind")
    steps, features = x.shape
    directions = 2 if options["bidirectional"] else 1
    rows = gates * out
    parameters = 0
    for layer in range(depth):
        columns = (directions * out if layer else features) + out + (2 if options["bias"] else 0)
        parameters += directions * rows * columns

    def make() -> nn.Module:
        from gradcli.config import modules

        kinds = {"LSTM": modules.LSTM, "GRU": modules.GRU, "RNN": modules.RNN}
        made: modules.States = kinds[kind](
            features, out, num_layers=depth, batch_first=True, **options
        )
        made.last = last
        return made

    width = directions * out
    return Fitted(x.to(width) if last else x.to(steps, width), parameters, make)
