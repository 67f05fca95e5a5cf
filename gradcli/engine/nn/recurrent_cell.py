"""RNNCell, LSTMCell and GRUCell: one step; and what they share with layers over sequences."""

from __future__ import annotations

__all__ = ["LSTMCell", "GRUCell", "RNNCell"]

from collections.abc import Sequence
from math import sqrt
from typing import Any, ClassVar, Literal

from gradcli.engine import dtype as dtypes
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Count, Whole
from gradcli.engine.nn import init
from gradcli.engine.nn.embedding import linear
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.op import Op
from gradcli.engine.ops.creation.creation import empty
from gradcli.engine.ops.sequence.recurrent import gru_steps, lstm_steps, rnn_steps
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, ShapeError

Nonlinearity = Literal["tanh", "relu"]


def add_weights(
    module: Module, units: int, features: int, hidden: int, bias: bool, suffix: str, dtype: DType
) -> None:
    """Enter the weights of one layer and direction, under torch's names."""
    for name, shape in {
        "weight_ih": (units, features),
        "weight_hh": (units, hidden),
        **({"bias_ih": (units,), "bias_hh": (units,)} if bias else {}),
    }.items():
        module.register_parameter(name + suffix, Parameter(empty(*shape, dtype=dtype)))


def spread(module: Module, hidden: int) -> None:
    """All weights evenly spread within 1 / sqrt(hidden), as torch begins."""
    bound = 1 / sqrt(hidden)
    for parameter in module.parameters():
        init.uniform_(parameter, -bound, bound)


def biases(
    op: Op[Any], b_ih: Tensor | None, b_hh: Tensor | None
) -> tuple[Tensor | None, tuple[Tensor | None, ...]]:
    """What is added to all steps before, and what the op adds, if it does: in a GRU that is scaled.

    One sum of both biases has one gradient.
    """
    if "b_hh" in op.inputs:
        return b_ih, (b_hh,)
    return (None if b_ih is None or b_hh is None else b_ih + b_hh), ()


def first_states(name: str, hx: object, keys: Sequence[str]) -> list[Tensor | None]:
    """The first states as a list; None for each where none are given."""
    if hx is None:
        return [None] * len(keys)
    states = [hx] if len(keys) == 1 else hx
    if not isinstance(states, Sequence) or [isinstance(s, Tensor) for s in states] != [True] * len(
        keys
    ):
        expected = "a Tensor" if len(keys) == 1 else "a pair of Tensors (h_0, c_0)"
        raise DTypeError(f"{name}: hx must be {expected}, got {type(hx).__name__}")
    return list(states)


class _Cell(Module):
    """One step of one layer: input (batch, input_size) or (input_size,), states alike."""

    op: ClassVar[Op[tuple[Tensor, ...]]]
    gates: ClassVar[int]
    states: ClassVar[tuple[str, ...]] = ("h_0",)
    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: Whole,
        hidden_size: Count,
        bias: bool = True,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        add_weights(self, self.gates * hidden_size, input_size, hidden_size, bias, "", dtype)
        if not bias:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """All weights evenly spread within 1 / sqrt(hidden_size)."""
        spread(self, self.hidden_size)

    def options(self) -> dict[str, Any]:
        """What the op is told beside the tensors."""
        return {}

    def forward(self, input: Tensor, hx: Any = None) -> Tensor | tuple[Tensor, ...]:
        """The states after the step."""
        name = type(self).__name__
        first = first_states(name, hx, self.states)
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise ShapeError(
                f"{name}: input must be (batch, {self.input_size}) or ({self.input_size},), "
                f"got {input.shape}"
            )
        shape = (*input.shape[:-1], self.hidden_size)
        for key, state in zip(self.states, first, strict=True):
            if state is not None and state.shape != shape:
                raise ShapeError(f"{name}: {key} must be {shape}, got {state.shape}")
        rows = [s if s is None else s.reshape(-1, self.hidden_size) for s in first]
        bias, inner = biases(self.op, self.bias_ih, self.bias_hh)
        sums = linear(input, self.weight_ih, bias)
        _, *last = self.op(
            sums.reshape(1, -1, self.gates * self.hidden_size),
            self.weight_hh,
            *inner,
            *rows,
            **self.options(),
        )
        states = [s.reshape(shape) for s in last]
        return tuple(states) if len(states) > 1 else states[0]

    def extra_repr(self) -> str:
        """As torch shows it."""
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class LSTMCell(_Cell):
    """One step of an LSTM: (input, (h, c)) to (h, c)."""

    op = lstm_steps
    gates = 4
    states = ("h_0", "c_0")


class GRUCell(_Cell):
    """One step of a GRU: (input, h) to h."""

    op = gru_steps
    gates = 3


class RNNCell(_Cell):
    """One step of a plain recurrent layer: (input, h) to h."""

    op = rnn_steps
    gates = 1

    def __init__(
        self,
        input_size: Whole,
        hidden_size: Count,
        bias: bool = True,
        nonlinearity: Nonlinearity = "tanh",
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, dtype=dtype)
        self.nonlinearity = nonlinearity

    def options(self) -> dict[str, Any]:
        """Which function."""
        return {"nonlinearity": self.nonlinearity}

    def extra_repr(self) -> str:
        """As torch shows it."""
        plain = self.nonlinearity == "tanh"
        return super().extra_repr() + ("" if plain else f", nonlinearity={self.nonlinearity}")
