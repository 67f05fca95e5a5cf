"""RNN, LSTM and GRU over whole sequences."""

from __future__ import annotations

__all__ = ["LSTM", "GRU", "RNN"]

from typing import Annotated, Any, ClassVar

from gradcli.engine import dtype as dtypes
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Count, Portion, Whole, within
from gradcli.engine.nn import functional as F
from gradcli.engine.nn.embedding import linear
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.recurrent_cell import (
    Nonlinearity,
    add_weights,
    biases,
    first_states,
    spread,
)
from gradcli.engine.op import Op
from gradcli.engine.ops.sequence.recurrent import gru_steps, lstm_steps, rnn_steps
from gradcli.engine.ops.shape.join import cat, stack
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, ShapeError

Layers = Annotated[int, within("a whole number from 1 to 10000", ge=1, le=10_000)]


class Recurrent(Module):
    """Layers of one kind on top of each other, each perhaps in both directions.

    Input (steps, batch, input_size), with `batch_first` (batch, steps, input_size), without batch
    (steps, input_size). First states (layers * directions, batch, hidden_size), 0 if left out.
    """

    op: ClassVar[Op[tuple[Tensor, ...]]]
    gates: ClassVar[int]
    states: ClassVar[tuple[str, ...]] = ("h_0",)

    def __init__(
        self,
        input_size: Whole,
        hidden_size: Count,
        num_layers: Layers = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: Portion = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self._check_options(proj_size)
        for layer in range(num_layers):
            features = hidden_size * self.directions if layer else input_size
            for suffix in self._suffixes(layer):
                units = self.gates * hidden_size
                add_weights(self, units, features, hidden_size, bias, suffix, dtype)
        self.reset_parameters()

    def _check_options(self, proj_size: int) -> None:
        name = type(self).__name__
        if self.dropout and self.num_layers == 1:
            raise OptionError(
                f"{name}: dropout acts between layers and there is only one; "
                "put a Dropout behind it instead"
            )
        if proj_size:
            raise OptionError(
                f"{name}: proj_size must be 0, got {proj_size}; put a Linear behind it instead"
            )

    @property
    def directions(self) -> int:
        """1, or 2 when every layer also goes backwards."""
        return 2 if self.bidirectional else 1

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}{end}" for end in ("", "_reverse")[: self.directions]]

    def reset_parameters(self) -> None:
        """All weights evenly spread within 1 / sqrt(hidden_size)."""
        spread(self, self.hidden_size)

    def options(self) -> dict[str, Any]:
        """What the op is told beside the order of dimensions."""
        return {}

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor | tuple[Tensor, ...]]:
        """The last layer's states at all steps, and the last states of all layers."""
        first = first_states(type(self).__name__, hx, self.states)
        self._check_input(input, first)
        batched = input.ndim == 3
        dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(dim)
            first = [None if s is None else s.unsqueeze(1) for s in first]
        y, last = self._layers(input, first)
        if not batched:
            y, last = y.squeeze(dim), [s.squeeze(1) for s in last]
        return y, tuple(last) if len(last) > 1 else last[0]

    def _layers(self, y: Tensor, first: list[Tensor | None]) -> tuple[Tensor, list[Tensor]]:
        last: list[list[Tensor]] = [[] for _ in first]
        for layer in range(self.num_layers):
            if layer:
                y = F.dropout(y, self.dropout, self.training) if self.dropout else y
            outputs = []
            for suffix in self._suffixes(layer):
                at = len(last[0])
                output, *ends = self._direction(
                    y, suffix, [s if s is None else s[at] for s in first]
                )
                outputs.append(output)
                for column, end in zip(last, ends, strict=True):
                    column.append(end)
            y = cat(outputs, -1) if len(outputs) > 1 else outputs[0]
        return y, [stack(c) if len(c) > 1 else c[0].unsqueeze(0) for c in last]

    def _direction(self, x: Tensor, suffix: str, first: list[Tensor | None]) -> tuple[Tensor, ...]:
        b_ih, b_hh = (getattr(self, f"bias_{i}h{suffix}") if self.bias else None for i in "ih")
        bias, inner = biases(self.op, b_ih, b_hh)
        return self.op(
            linear(x, getattr(self, f"weight_ih{suffix}"), bias),
            getattr(self, f"weight_hh{suffix}"),
            *inner,
            *first,
            batch_first=self.batch_first,
            reverse=suffix.endswith("_reverse"),
            **self.options(),
        )

    def _check_input(self, input: Tensor, first: list[Tensor | None]) -> None:
        name = type(self).__name__
        if not isinstance(input, Tensor):
            raise DTypeError(f"{name}: input must be a Tensor, got {type(input).__name__}")
        order = "(batch, steps, " if self.batch_first else "(steps, batch, "
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
            raise ShapeError(
                f"{name}: input must be {order}{self.input_size}) or (steps, {self.input_size}), "
                f"got {input.shape}"
            )
        batch = (input.shape[0 if self.batch_first else 1],) if input.ndim == 3 else ()
        shape = (self.num_layers * self.directions, *batch, self.hidden_size)
        for key, state in zip(self.states, first, strict=True):
            if state is not None and state.shape != shape:
                raise ShapeError(
                    f"{name}: {key} must be {shape} for input {input.shape}, got {state.shape}"
                )

    def extra_repr(self) -> str:
        """As torch shows it: what is not the default."""
        options = {
            "num_layers": (self.num_layers, 1),
            "bias": (self.bias, True),
            "batch_first": (self.batch_first, False),
            "dropout": (self.dropout, 0),
            "bidirectional": (self.bidirectional, False),
        }
        parts = [f"{key}={value}" for key, (value, usual) in options.items() if value != usual]
        return ", ".join([str(self.input_size), str(self.hidden_size), *parts])


class LSTM(Recurrent):
    """Long short-term memory: c = f c + i g and h = o tanh(c) at each step.

    Gives (states at all steps, (h_n, c_n)); first states as a pair (h_0, c_0).
    """

    op = lstm_steps
    gates = 4
    states = ("h_0", "c_0")


class GRU(Recurrent):
    """Gated recurrent unit: h = (1 - z) n + z h at each step.

    Gives (states at all steps, h_n).
    """

    op = gru_steps
    gates = 3


class RNN(Recurrent):
    """The plain recurrent layer: h = tanh(x w_ih + h w_hh), or relu of it, at each step.

    Gives (states at all steps, h_n).
    """

    op = rnn_steps
    gates = 1

    def __init__(
        self,
        input_size: Whole,
        hidden_size: Count,
        num_layers: Layers = 1,
        nonlinearity: Nonlinearity = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: Portion = 0.0,
        bidirectional: bool = False,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            dtype=dtype,
        )
        self.nonlinearity = nonlinearity

    def options(self) -> dict[str, Any]:
        """Which function."""
        return {"nonlinearity": self.nonlinearity}
