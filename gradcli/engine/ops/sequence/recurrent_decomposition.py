"""Decompositions of recurrent layers: one step after another, of simpler ops."""

from __future__ import annotations

from typing import Literal

from gradcli.engine import table
from gradcli.engine.ops.creation.creation import zeros
from gradcli.engine.ops.shape.join import stack
from gradcli.engine.table import OPS
from gradcli.engine.tensor import Tensor


def _inputs(
    x: Tensor, w_hh: Tensor, batch_first: bool, reverse: bool
) -> tuple[list[Tensor], Tensor]:
    """What comes in at each step, in the order of work; and zeros for a state that is not given."""
    every = [x[:, i] if batch_first else x[i] for i in range(x.shape[batch_first])]
    zero = zeros(x.shape[not batch_first], w_hh.shape[1], dtype=x.dtype)
    return every[::-1] if reverse else every, zero


def _outputs(states: list[Tensor], batch_first: bool, reverse: bool) -> Tensor:
    """The states of all steps as one tensor."""
    return stack(states[::-1] if reverse else states, int(batch_first))


def _piece(x: Tensor, gate: int, hidden: int) -> Tensor:
    """The numbers of one gate."""
    return x[:, gate * hidden : (gate + 1) * hidden]


def decomposed_lstm(
    x: Tensor,
    w_hh: Tensor,
    h0: Tensor | None = None,
    c0: Tensor | None = None,
    *,
    batch_first: bool = False,
    reverse: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """The LSTM of Hochreiter and Schmidhuber (1997), with a forget gate."""
    every, zero = _inputs(x, w_hh, batch_first, reverse)
    h, c = zero if h0 is None else h0, zero if c0 is None else c0
    states = []
    for now in every:
        gates = now + table.linear(h, w_hh)
        i, f, g, o = (_piece(gates, k, w_hh.shape[1]) for k in range(4))
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        states.append(h)
    return _outputs(states, batch_first, reverse), h, c


def decomposed_gru(
    x: Tensor,
    w_hh: Tensor,
    b_hh: Tensor | None = None,
    h0: Tensor | None = None,
    *,
    batch_first: bool = False,
    reverse: bool = False,
) -> tuple[Tensor, Tensor]:
    """The GRU of Cho et al. (2014), with r behind the product of h."""
    every, zero = _inputs(x, w_hh, batch_first, reverse)
    h, hidden = zero if h0 is None else h0, w_hh.shape[1]
    states = []
    for now in every:
        old = table.linear(h, w_hh, b_hh)
        r, z = ((_piece(now, k, hidden) + _piece(old, k, hidden)).sigmoid() for k in range(2))
        n = (_piece(now, 2, hidden) + r * _piece(old, 2, hidden)).tanh()
        h = (1 - z) * n + z * h
        states.append(h)
    return _outputs(states, batch_first, reverse), h


def decomposed_rnn(
    x: Tensor,
    w_hh: Tensor,
    h0: Tensor | None = None,
    *,
    nonlinearity: Literal["tanh", "relu"] = "tanh",
    batch_first: bool = False,
    reverse: bool = False,
) -> tuple[Tensor, Tensor]:
    """Tanh or relu of a sum of both products."""
    every, zero = _inputs(x, w_hh, batch_first, reverse)
    h = zero if h0 is None else h0
    states = []
    for now in every:
        h = OPS[nonlinearity](now + table.linear(h, w_hh))
        states.append(h)
    return _outputs(states, batch_first, reverse), h
