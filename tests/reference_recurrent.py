"""References of recurrent layers in plain Python float64: one sample, one step, one unit a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from grid import Grid

Numbers = list[float]
Cell = Callable[[Numbers, Numbers, list[Numbers]], list[Numbers]]  # of x, of h, states -> states


def _product(x: Numbers, weight: Grid, bias: Grid | None) -> Numbers:
    rows, columns = weight.shape
    return [
        math.fsum(x[k] * weight[i, k] for k in range(columns)) + (bias[(i,)] if bias else 0.0)
        for i in range(rows)
    ]


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _lstm(x: Numbers, h: Numbers, states: list[Numbers]) -> list[Numbers]:
    n, sums = len(states[0]), [a + b for a, b in zip(x, h, strict=True)]
    made: list[Numbers] = [[], []]
    for k, c in enumerate(states[1]):
        i, f, o = (_sigmoid(sums[at * n + k]) for at in (0, 1, 3))
        made[1].append(f * c + i * math.tanh(sums[2 * n + k]))
        made[0].append(o * math.tanh(made[1][-1]))
    return made


def _gru(x: Numbers, h: Numbers, states: list[Numbers]) -> list[Numbers]:
    n, made = len(states[0]), []
    for k, before in enumerate(states[0]):
        r, z = (_sigmoid(x[at * n + k] + h[at * n + k]) for at in (0, 1))
        made.append((1 - z) * math.tanh(x[2 * n + k] + r * h[2 * n + k]) + z * before)
    return [made]


def _layer(
    cell: Cell,
    count: int,
    biased: bool,
    inputs: tuple[Grid | None, ...],
    batch_first: bool = False,
    reverse: bool = False,
) -> tuple[Grid, ...]:
    x, w_hh, *rest = (*inputs, *[None] * (2 + biased + count - len(inputs)))
    first, b_hh = rest[biased:], rest[0] if biased else None
    assert x and w_hh
    steps, batch = x.shape[batch_first], x.shape[not batch_first]
    hidden, sums = w_hh.shape[1], x.shape[2]
    y: dict[tuple[int, ...], float] = {}
    last: list[Numbers] = [[] for _ in range(count)]
    for b in range(batch):
        states = [[s[b, k] if s else 0.0 for k in range(hidden)] for s in first]
        for t in reversed(range(steps)) if reverse else range(steps):
            now = [x[(b, t, k) if batch_first else (t, b, k)] for k in range(sums)]
            states = cell(now, _product(states[0], w_hh, b_hh), states)
            for k in range(hidden):
                y[(b, t, k) if batch_first else (t, b, k)] = states[0][k]
        for kept, state in zip(last, states, strict=True):
            kept += state
    shape = (batch, steps, hidden) if batch_first else (steps, batch, hidden)
    return (Grid.from_function(shape, y.__getitem__), *(Grid((batch, hidden), s) for s in last))


def _rnn_steps(*inputs: Grid | None, nonlinearity: str = "tanh", **options: Any) -> Any:
    f: Callable[[float], float] = math.tanh if nonlinearity == "tanh" else lambda v: max(v, 0.0)

    def cell(x: Numbers, h: Numbers, states: list[Numbers]) -> list[Numbers]:
        return [[f(a + b) for a, b in zip(x, h, strict=True)]]

    return _layer(cell, 1, False, inputs, **options)


REFERENCES: dict[str, Callable[..., Any]] = {
    "lstm_steps": lambda *inputs, **options: _layer(_lstm, 2, False, inputs, **options),
    "gru_steps": lambda *inputs, **options: _layer(_gru, 1, True, inputs, **options),
    "rnn_steps": _rnn_steps,
}
