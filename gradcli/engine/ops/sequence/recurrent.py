"""What goes from step to step in an LSTM, a GRU and a plain recurrent layer, for all steps at once.

What the input adds to the gates is one `linear` over all steps, done before; here is the rest of
one layer in one direction.
"""

from __future__ import annotations

from typing import Any, Literal

from gradcli.engine.array import Array, empty, run
from gradcli.engine.op import op
from gradcli.engine.ops.sequence import steps
from gradcli.engine.ops.sequence.recurrent_decomposition import (
    decomposed_gru,
    decomposed_lstm,
    decomposed_rnn,
)
from gradcli.engine.sample import Sample, Wrong, none, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.errors import OptionError

Gradients = tuple[Array | None, ...]
Outputs = tuple[Array | None, ...]


def _samples(gates: int, *states: str, **options: object) -> list[Sample]:
    """What the input adds, w_hh, and `states` (a bias, first states), of so many gates."""

    def case(time: int, batch: int, hidden: int, with_states: bool, **more: object) -> Sample:
        units = gates * hidden
        shape = (batch, time, units) if more.get("batch_first") else (time, batch, units)
        rest = [
            ((units,) if o == "bias" else (batch, hidden)) if with_states else none()
            for o in states
        ]
        return sample(shape, (units, hidden), *rest, **options, **more)

    return [
        case(3, 2, 5, True),
        case(2, 3, 3, False),
        case(2, 3, 3, True, batch_first=True),
        case(3, 2, 2, True, reverse=True),
        case(2, 5, 4, False, reverse=True, batch_first=True),
        case(2, 11, 18, True),
        case(1, 1, 1, True),
        case(2, 0, 2, True),
    ]


def _wrong(gates: int, *states: str) -> list[Wrong]:
    """Refusals that all of them share, on three hidden units."""
    units = 3 * gates
    x, w_hh = (5, 4, units), (units, 3)
    rest: list[Shape] = [(units,) if state == "bias" else (4, 3) for state in states]
    state = states.index("state")

    def case(match: str, *inputs: Any, **more: Any) -> Wrong:
        return wrong(sample(*inputs, **more), match)

    return [
        case("x must be (steps, batch, ", (4, units), w_hh),
        case("x must be (batch, steps, ", (5, 4, 3 * units), w_hh, batch_first=True),
        case(f"x (0, 4, {units}), (steps, batch, ", (0, 4, units), w_hh),
        case(f"x (4, 0, {units}), (batch, ", (4, 0, units), w_hh, batch_first=True),
        case("w_hh must be (", x, (units, 2)),
        case("w_hh must be (", x, (0, 0)),
        case("h0 must be (4, 3)", x, w_hh, *rest[:state], (5, 3)),
        case("h0 must be (5, 3)", x, w_hh, *rest, batch_first=True),
    ]


# -- LSTM ------------------------------------------------------------------------------------------


@op(
    method=False,
    outputs=("y", "h_n", "c_n", "gates", "c"),
    visible=3,
    saves=("w_hh", "h0", "y", "gates", "c"),
    decomposition=decomposed_lstm,
    samples=_samples(4, "state", "state"),
    wrong=_wrong(4, "state", "state"),
)
def lstm_steps(
    x: Array,
    w_hh: Array,
    h0: Array | None = None,
    c0: Array | None = None,
    *,
    batch_first: bool = False,
    reverse: bool = False,
) -> Outputs:
    """At each step c = f c + i g, h = o tanh(c); i, f, o = sigmoid, g = tanh of x + h w_hh.

    Gives h of all steps, and h and c of the last one (of the first one with `reverse`).
    """
    hidden = steps.check("lstm_steps", 4, x, w_hh, {"h0": h0, "c0": c0}, batch_first)
    gates = empty(x.shape, x.dtype.computed)
    y = empty((*x.shape[:2], hidden), x.dtype)
    timed = steps.timed(y, batch_first)
    c = empty((timed.shape[0] + 1, *timed.shape[1:]), x.dtype.computed)
    first = [steps.optional(part, x) for part in (h0, c0)]
    run(
        "lstm_forward",
        steps.steps(x, x, batch_first),
        w_hh.contiguous(),
        *first,
        steps.timed(gates, batch_first),
        timed,
        c,
        sizes=(reverse,),
    )
    last = timed.shape[0] - 1
    return (
        y,
        steps.state(timed, 0 if reverse else last),
        steps.state(c, last + 1, x.dtype),
        gates,
        c,
    )


@lstm_steps.gradient
def lstm_steps_gradient(
    grads: Gradients,
    *,
    w_hh: Array,
    h0: Array | None,
    y: Array,
    gates: Array,
    c: Array,
    batch_first: bool,
    reverse: bool,
    needs: tuple[bool, ...],
) -> Gradients:
    """The steps backwards give the gradients of the gates; those of the weights are products."""
    sums, first = empty(gates.shape, y.dtype), empty((2, *c.shape[1:]), y.dtype)
    run(
        "lstm_backward",
        steps.steps(grads[0], y, batch_first),
        steps.timed(gates, batch_first),
        c,
        w_hh.contiguous(),
        steps.optional(grads[1], y),
        steps.optional(grads[2], y),
        steps.timed(sums, batch_first),
        first,
        sizes=(reverse,),
    )
    flat = steps.rows(sums)
    before = steps.states_before(y, h0, batch_first, reverse) if needs[1] else None
    return (
        sums,
        None if before is None else steps.weight_gradient(flat, before),
        steps.part(first, 0, 1).reshape(c.shape[1:]),
        steps.part(first, 1, 1).reshape(c.shape[1:]),
    )


# -- GRU -------------------------------------------------------------------------------------------


@op(
    method=False,
    outputs=("y", "h_n", "gates", "scaled"),
    visible=2,
    saves=("w_hh", "h0", "y", "gates", "scaled"),
    decomposition=decomposed_gru,
    samples=_samples(3, "bias", "state"),
    wrong=[
        *_wrong(3, "bias", "state"),
        wrong(sample((5, 4, 9), (9, 3), (1, 9)), "gru_steps: b_hh must be (9,)"),
    ],
)
def gru_steps(
    x: Array,
    w_hh: Array,
    b_hh: Array | None = None,
    h0: Array | None = None,
    *,
    batch_first: bool = False,
    reverse: bool = False,
) -> Outputs:
    """At each step h = (1 - z) n + z h; r, z = sigmoid, n = tanh, where n takes h w_hh times r.

    Gives h of all steps, and that of the last one (of the first one with `reverse`).
    """
    hidden = steps.check("gru_steps", 3, x, w_hh, {"b_hh": b_hh, "h0": h0}, batch_first)
    gates = empty(x.shape, x.dtype.computed)
    y = empty((*x.shape[:2], hidden), x.dtype)
    timed = steps.timed(y, batch_first)
    scaled = empty(timed.shape, x.dtype.computed)
    run(
        "gru_forward",
        steps.steps(x, x, batch_first),
        w_hh.contiguous(),
        steps.optional(b_hh, x),
        steps.optional(h0, x),
        steps.timed(gates, batch_first),
        scaled,
        timed,
        sizes=(reverse,),
    )
    return y, steps.state(timed, 0 if reverse else timed.shape[0] - 1), gates, scaled


@gru_steps.gradient
def gru_steps_gradient(
    grads: Gradients,
    *,
    w_hh: Array,
    h0: Array | None,
    y: Array,
    gates: Array,
    scaled: Array,
    batch_first: bool,
    reverse: bool,
    needs: tuple[bool, ...],
) -> Gradients:
    """As for the LSTM; what h adds to n has a gradient of its own, r times that of n."""
    hidden = y.shape[-1]
    before = steps.states_before(y, h0, batch_first, reverse)
    sums = empty((*y.shape[:2], 4 * hidden), y.dtype)  # of r, z, n, and of what r scales
    first = empty((1, *scaled.shape[1:]), y.dtype)
    run(
        "gru_backward",
        steps.steps(grads[0], y, batch_first),
        steps.timed(gates, batch_first),
        scaled,
        steps.timed(before, batch_first),
        w_hh.contiguous(),
        steps.optional(grads[1], y),
        steps.timed(sums, batch_first),
        first,
        sizes=(reverse,),
    )
    flat = steps.rows(sums)
    return (
        steps.part(sums, 0, 3 * hidden, dim=2),
        _past_n(flat, before) if needs[1] else None,
        _past_n(steps.columns(flat)) if needs[2] else None,
        first.reshape(first.shape[1:]),
    )


def _past_n(sums: Array, before: Array | None = None) -> Array:
    """All of (..., 4 * hidden) but n, in which w_hh has no part; with `before`, times that."""
    hidden, dim = sums.shape[-1] // 4, sums.ndim - 1
    out = empty((3 * hidden, *(() if before is None else before.shape[2:])), sums.dtype)
    for first, count, to in ((0, 2 * hidden, 0), (3 * hidden, hidden, 2 * hidden)):
        source, target = steps.part(sums, first, count, dim), steps.part(out, to, count)
        if before is None:
            run("copy", source, target)
        else:
            steps.weight_gradient(source, before, target)
    return out


# -- the plain one ---------------------------------------------------------------------------------


@op(
    method=False,
    outputs=("y", "h_n"),
    visible=2,
    saves=("w_hh", "h0", "y"),
    decomposition=decomposed_rnn,
    samples=[*_samples(1, "state"), *_samples(1, "state", nonlinearity="relu")],
    wrong=_wrong(1, "state"),
)
def rnn_steps(
    x: Array,
    w_hh: Array,
    h0: Array | None = None,
    *,
    nonlinearity: Literal["tanh", "relu"] = "tanh",
    batch_first: bool = False,
    reverse: bool = False,
) -> Outputs:
    """At each step h = tanh(x + h w_hh), or relu of it.

    Gives h of all steps, and that of the last one (of the first one with `reverse`).
    """
    steps.check("rnn_steps", 1, x, w_hh, {"h0": h0}, batch_first)
    if nonlinearity not in ("tanh", "relu"):
        raise OptionError(f"rnn_steps: nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")
    y = empty(x.shape, x.dtype)
    timed = steps.timed(y, batch_first)
    run(
        "rnn_forward",
        steps.steps(x, x, batch_first),
        w_hh.contiguous(),
        steps.optional(h0, x),
        timed,
        sizes=(reverse, nonlinearity == "relu"),
    )
    return y, steps.state(timed, 0 if reverse else timed.shape[0] - 1)


@rnn_steps.gradient
def rnn_steps_gradient(
    grads: Gradients,
    *,
    w_hh: Array,
    h0: Array | None,
    y: Array,
    nonlinearity: str,
    batch_first: bool,
    reverse: bool,
    needs: tuple[bool, ...],
) -> Gradients:
    """As for the LSTM, with one sum in the place of its gates."""
    timed = steps.timed(y, batch_first)
    sums, first = empty(y.shape, y.dtype), empty((1, *timed.shape[1:]), y.dtype)
    run(
        "rnn_backward",
        steps.steps(grads[0], y, batch_first),
        timed,
        w_hh.contiguous(),
        steps.optional(grads[1], y),
        steps.timed(sums, batch_first),
        first,
        sizes=(reverse, nonlinearity == "relu"),
    )
    flat = steps.rows(sums)
    before = steps.states_before(y, h0, batch_first, reverse) if needs[1] else None
    return (
        sums,
        None if before is None else steps.weight_gradient(flat, before),
        first.reshape(first.shape[1:]),
    )
