"""Launches of layers with a memory: one for each step of the sequence, in the order of work."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from gradcli.engine.device.gpu.launch import Arg, Draft, TensorArg, launches, tensors

SIDE = 16  # rows of the batch, and hidden units, of a block
_HEAD = struct.Struct("2I")
_BACK = struct.Struct("5I")
_ROWS = struct.Struct("3I")


class StateRows(NamedTuple):
    """A struct Rows (csrc/gpu/sequence/recurrent.gc): where they begin, their distance, if any."""

    first: int = 0
    row: int = 0
    present: bool = False

    def packed(self) -> bytes:
        """As the kernel reads it."""
        return _ROWS.pack(*self)


class RecurrentSizes(NamedTuple):
    """What the calls of one layer have in common."""

    call: Draft
    steps: int
    batch: int
    hidden: int

    def order(self) -> Iterator[tuple[int, int, int]]:
        """Steps in the order of work: number, its time, and the time of the step before."""
        for step in range(self.steps):
            yield step, self.time(step), self.time(step - 1)

    def time(self, step: int) -> int:
        """The time of a step; from the last to the first where the sequence is reversed."""
        return self.steps - 1 - step if self.call.size(0) else step

    def at(self, number: int, time: int) -> StateRows:
        """The rows of one of the tensors (steps, batch, ...) at a time; none if it is left out."""
        x = self.call.tensors[number]
        return (
            StateRows(time * x.strides[0], x.strides[1], True) if len(x.shape) == 3 else StateRows()
        )

    def state(self, number: int, which: int = 0) -> StateRows:
        """The rows of a state (batch, hidden), or of one of several; none if it is left out."""
        x = self.call.tensors[number]
        present = len(x.shape) > 1
        return (
            StateRows(which * self.batch * self.hidden, self.hidden, present)
            if present
            else StateRows()
        )

    def launch(self, kernel: str, *args: Arg) -> None:
        """One step."""
        blocks = -(-self.batch // SIDE) * -(-self.hidden // SIDE)
        self.call.launch(kernel, (blocks, 1, 1), *args)

    def step(self, *rows: StateRows) -> bytes:
        """A struct Step."""
        return _HEAD.pack(self.batch, self.hidden) + b"".join(each.packed() for each in rows)

    def back(self, gates: int, plain: int, *rows: StateRows) -> bytes:
        """A struct Back: of `gates` gates, of which `plain` stand before one to be left out."""
        skip = 0 if plain == gates else self.hidden
        numbers = (self.batch, self.hidden, gates * self.hidden, plain * self.hidden, skip)
        return _BACK.pack(*numbers) + b"".join(each.packed() for each in rows)


def _layer(call: Draft, x: int, w: int) -> RecurrentSizes:
    """From the numbers of a tensor (steps, batch, ...) and of the weights of the states."""
    steps, batch = call.tensors[x].shape[:2]
    return RecurrentSizes(call, steps, batch, call.tensors[w].shape[1])


@launches("lstm_forward")
def lstm_forward(call: Draft) -> None:
    """Tensors gates_x, w, h0, c0, gates, y, c."""
    s = _layer(call, 0, 1)
    for step, time, earlier in s.order():
        before, state = (TensorArg(5), s.at(5, earlier)) if step else (TensorArg(2), s.state(2))
        cell, c_from = (TensorArg(6), s.state(6, step)) if step else (TensorArg(3), s.state(3))
        shape = s.step(s.at(0, time), state, s.at(4, time), s.at(5, time))
        memory = *tensors(0, 1), before, cell, *tensors(4, 5, 6)
        s.launch("lstm_forward", *memory, shape, c_from.packed(), step)


@launches("gru_forward")
def gru_forward(call: Draft) -> None:
    """Tensors gates_x, w, bias, h0, gates, scaled, y."""
    s = _layer(call, 0, 1)
    for step, time, earlier in s.order():
        before, state = (TensorArg(6), s.at(6, earlier)) if step else (TensorArg(3), s.state(3))
        shape = s.step(s.at(0, time), state, s.at(4, time), s.at(6, time))
        memory = *tensors(0, 1, 2), before, *tensors(4, 5, 6)
        s.launch("gru_forward", *memory, shape, call.has(2), step)


@launches("rnn_forward")
def rnn_forward(call: Draft) -> None:
    """Tensors sums_x, w, h0, y."""
    s = _layer(call, 0, 1)
    for step, time, earlier in s.order():
        before, state = (TensorArg(3), s.at(3, earlier)) if step else (TensorArg(2), s.state(2))
        shape = s.step(s.at(0, time), state, StateRows(), s.at(3, time))
        memory = *tensors(0, 1), before, TensorArg(3)
        s.launch("rnn_forward", *memory, shape, call.size(1) != 0)


@launches("lstm_backward")
def lstm_backward(call: Draft) -> None:
    """Tensors grad of y, gates, c, w, grads of h_n and c_n, grads of the sums, of h0 and c0."""
    s = _layer(call, 1, 3)
    for step in reversed(range(s.steps)):
        time, last = s.time(step), step == s.steps - 1
        after = StateRows() if last else s.at(6, s.time(step + 1))
        end = s.state(4) if last else StateRows()
        cell, c_from = (TensorArg(5), s.state(5)) if last else (TensorArg(7), s.state(7, 1))
        shape = s.back(4, 4, after, end, s.at(0, time), s.at(1, time), s.at(6, time))
        memory = *tensors(6, 3, 4, 0, 1, 2), cell
        outs = tensors(6, 7)
        s.launch("lstm_backward", *memory, *outs, shape, c_from.packed(), step)
    _first_state(s, 6, 3, 7, s.back(4, 4, s.at(6, s.time(0)), *[StateRows()] * 3))


@launches("gru_backward")
def gru_backward(call: Draft) -> None:
    """Tensors grad of y, gates, scaled, states before, w, grad of h_n, grads of the sums, of h0."""
    s = _layer(call, 1, 4)
    for step in reversed(range(s.steps)):
        time, last = s.time(step), step == s.steps - 1
        after = StateRows() if last else s.at(6, s.time(step + 1))
        ending, end = (TensorArg(5), s.state(5)) if last else (TensorArg(7), s.state(7))
        shape = s.back(3, 2, after, end, s.at(0, time), s.at(1, time), s.at(6, time))
        memory = *tensors(6, 4), ending, *tensors(0, 1, 2, 3)
        outs, states = tensors(6, 7), s.at(3, time)
        s.launch("gru_backward", *memory, *outs, shape, states.packed(), step)
    first = s.back(3, 2, s.at(6, s.time(0)), s.state(7), *[StateRows()] * 2)
    _first_state(s, 6, 4, 7, first)


@launches("rnn_backward")
def rnn_backward(call: Draft) -> None:
    """Tensors grad of y, y, w, grad of h_n, grads of the sums, of h0."""
    s = _layer(call, 1, 2)
    for step in reversed(range(s.steps)):
        time, last = s.time(step), step == s.steps - 1
        after = StateRows() if last else s.at(4, s.time(step + 1))
        end = s.state(3) if last else StateRows()
        shape = s.back(1, 1, after, end, s.at(0, time), s.at(1, time), s.at(4, time))
        memory = tensors(4, 2, 3, 0, 1, 4)
        s.launch("rnn_backward", *memory, shape, call.size(1) != 0)
    _first_state(s, 4, 2, 5, s.back(1, 1, s.at(4, s.time(0)), *[StateRows()] * 3))


def _first_state(s: RecurrentSizes, sums: int, w: int, to: int, shape: bytes) -> None:
    """The gradient of the first state, into rows of a state."""
    end = s.state(to).packed()
    s.launch("first_state", *tensors(sums, w, to, to), shape + end)
