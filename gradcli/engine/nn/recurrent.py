"""RNN, LSTM and GRU over whole sequences, and the cells that do one step."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, ClassVar, Literal

from gradcli.engine import dtype as dtypes
from gradcli.engine.dtype import DType
from gradcli.engine.nn import functional as F
from gradcli.engine.nn import init
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.op import Op
from gradcli.engine.ops.creation import empty
from gradcli.engine.ops.join import cat, stack
from gradcli.engine.ops.recurrent import gru_steps, lstm_steps, rnn_steps
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, ShapeError

Nonlinearity = Literal["tanh", "relu"]


def _add_weights(
    module: Module, units: int, features: int, hidden: int, bias: bool, suffix: str, dtype: DType
) -> None:
    """Enter the weights of one layer and direction, under torch's names."""
    for name, shape in {
        "weight_ih": (units, features),
        "weight_hh": (units, hidden),
        **({"bias_ih": (units,), "bias_hh": (units,)} if bias else {}),
    }.items():
        module.register_parameter(name + suffix, Parameter(empty(*shape, dtype=dtype)))


def _check_sizes(name: str, input_size: int, hidden_size: int) -> None:
    if input_size < 0 or hidden_size < 1:
        raise OptionError(
            f"{name}: input_size must be 0 or more and hidden_size 1 or more, "
            f"got {input_size} and {hidden_size}"
        )


def _spread(module: Module, hidden: int) -> None:
    """All weights evenly spread within 1 / sqrt(hidden), as torch begins."""
    bound = 1 / sqrt(hidden)
    for parameter in module.parameters():
        init.uniform_(parameter, -bound, bound)


def _states(name: str, hx: Any, keys: Sequence[str]) -> list[Tensor | None]:
    """The first states as a list; None for each where none are given."""
    if hx is None:
        return [None] * len(keys)
    given = [hx] if len(keys) == 1 else hx
    if not isinstance(given, Sequence) or [isinstance(s, Tensor) for s in given] != [True] * len(
        keys
    ):
        wanted = "a Tensor" if len(keys) == 1 else "a pair of Tensors (h_0, c_0)"
        raise DTypeError(f"{name}: hx must be {wanted}, got {type(hx).__name__}")
    return list(given)


class _Recurrent(Module):
    """Layers of one kind on top of each other, each perhaps in both directions.

    Input (steps, batch, input_size), with `batch_first` (batch, steps, input_size), without batch
    (steps, input_size). First states (layers * directions, batch, hidden_size), 0 if left out.
    """

    op: ClassVar[Op]
    gates: ClassVar[int]
    states: ClassVar[tuple[str, ...]] = ("h_0",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
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
                _add_weights(self, units, features, hidden_size, bias, suffix, dtype)
        self.reset_parameters()

    def _check_options(self, proj_size: int) -> None:
        name = type(self).__name__
        _check_sizes(name, self.input_size, self.hidden_size)
        if self.num_layers < 1:
            raise OptionError(f"{name}: num_layers must be 1 or more, got {self.num_layers}")
        if not 0 <= self.dropout <= 1:
            raise OptionError(f"{name}: dropout must be from 0 to 1, got {self.dropout}")
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
        _spread(self, self.hidden_size)

    def options(self) -> dict[str, Any]:
        """What the op is told beside the order of dimensions."""
        return {}

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """The last layer's states at all steps, and the last states of all layers."""
        first = _states(type(self).__name__, hx, self.states)
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
                made, *ends = self._direction(y, suffix, [s if s is None else s[at] for s in first])
                outputs.append(made)
                for column, end in zip(last, ends, strict=True):
                    column.append(end)
            y = cat(outputs, -1) if len(outputs) > 1 else outputs[0]
        return y, [stack(c) if len(c) > 1 else c[0].unsqueeze(0) for c in last]

    def _direction(self, x: Tensor, suffix: str, first: list[Tensor | None]) -> tuple[Tensor, ...]:
        b_ih, b_hh = (getattr(self, f"bias_{i}h{suffix}") if self.bias else None for i in "ih")
        result: tuple[Tensor, ...] = self.op(
            F.linear(x, getattr(self, f"weight_ih{suffix}"), b_ih),
            getattr(self, f"weight_hh{suffix}"),
            b_hh,
            *first,
            batch_first=self.batch_first,
            reverse=suffix.endswith("_reverse"),
            **self.options(),
        )
        return result

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
        wanted = (self.num_layers * self.directions, *batch, self.hidden_size)
        for key, state in zip(self.states, first, strict=True):
            if state is not None and state.shape != wanted:
                raise ShapeError(
                    f"{name}: {key} must be {wanted} for input {input.shape}, got {state.shape}"
                )

    def extra_repr(self) -> str:
        """As torch shows it: what is not the default."""
        shown = {
            "num_layers": (self.num_layers, 1),
            "bias": (self.bias, True),
            "batch_first": (self.batch_first, False),
            "dropout": (self.dropout, 0),
            "bidirectional": (self.bidirectional, False),
        }
        changed = [f"{key}={value}" for key, (value, usual) in shown.items() if value != usual]
        return ", ".join([str(self.input_size), str(self.hidden_size), *changed])


class LSTM(_Recurrent):
    """Long short-term memory: c = f c + i g and h = o tanh(c) at each step.

    Gives (states at all steps, (h_n, c_n)); first states as a pair (h_0, c_0).
    """

    op = lstm_steps
    gates = 4
    states = ("h_0", "c_0")


class GRU(_Recurrent):
    """Gated recurrent unit: h = (1 - z) n + z h at each step.

    Gives (states at all steps, h_n).
    """

    op = gru_steps
    gates = 3


class RNN(_Recurrent):
    """The plain recurrent layer: h = tanh(x w_ih + h w_hh), or relu of it, at each step.

    Gives (states at all steps, h_n).
    """

    op = rnn_steps
    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: Nonlinearity = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        _check_nonlinearity("RNN", nonlinearity)
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


def _check_nonlinearity(name: str, nonlinearity: str) -> None:
    if nonlinearity not in ("tanh", "relu"):
        raise OptionError(f"{name}: nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")


class _Cell(Module):
    """One step of one layer: input (batch, input_size) or (input_size,), states alike."""

    op: ClassVar[Op]
    gates: ClassVar[int]
    states: ClassVar[tuple[str, ...]] = ("h_0",)
    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        _check_sizes(type(self).__name__, input_size, hidden_size)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        _add_weights(self, self.gates * hidden_size, input_size, hidden_size, bias, "", dtype)
        if not bias:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """All weights evenly spread within 1 / sqrt(hidden_size)."""
        _spread(self, self.hidden_size)

    def options(self) -> dict[str, Any]:
        """What the op is told beside the tensors."""
        return {}

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """The states after the step."""
        name = type(self).__name__
        first = _states(name, hx, self.states)
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise ShapeError(
                f"{name}: input must be (batch, {self.input_size}) or ({self.input_size},), "
                f"got {input.shape}"
            )
        wanted = (*input.shape[:-1], self.hidden_size)
        for key, state in zip(self.states, first, strict=True):
            if state is not None and state.shape != wanted:
                raise ShapeError(f"{name}: {key} must be {wanted}, got {state.shape}")
        rows = [s if s is None else s.reshape(-1, self.hidden_size) for s in first]
        sums = F.linear(input, self.weight_ih, self.bias_ih)
        _, *last = self.op(
            sums.reshape(1, -1, self.gates * self.hidden_size),
            self.weight_hh,
            self.bias_hh,
            *rows,
            **self.options(),
        )
        states = [s.reshape(wanted) for s in last]
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
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: Nonlinearity = "tanh",
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        _check_nonlinearity("RNNCell", nonlinearity)
        super().__init__(input_size, hidden_size, bias, dtype=dtype)
        self.nonlinearity = nonlinearity

    def options(self) -> dict[str, Any]:
        """Which function."""
        return {"nonlinearity": self.nonlinearity}

    def extra_repr(self) -> str:
        """As torch shows it."""
        plain = self.nonlinearity == "tanh"
        return super().extra_repr() + ("" if plain else f", nonlinearity={self.nonlinearity}")
