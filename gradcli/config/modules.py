"""Modules that the engine does not have because torch has no name for them."""

from __future__ import annotations

from typing import Any

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.nn.recurrent import Recurrent
from gradcli.engine.nn.steps import step_by_step, unless_features, unless_random


class Residual(nn.Sequential):
    """x + layers(x), or shortcut(x) + layers(x)."""

    shortcut: nn.Module | None

    def __init__(self, *layers: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__(*layers)
        self.shortcut = shortcut

    @step_by_step
    def forward(self, input: Any) -> Any:
        """What the layers make of the input, and the input or what the shortcut makes of it."""
        output = input
        for module in self.children():
            if module is not self.shortcut:
                output = module(output)
        return (input if self.shortcut is None else self.shortcut(input)) + output


class Parallel(nn.Sequential):
    """Every branch on the same input: the results side by side along `dim`, or their sum."""

    def __init__(self, *branches: nn.Module, join: str = "concat", dim: int = 1) -> None:
        super().__init__(*branches)
        self.join = join
        self.dim = dim

    @step_by_step(unless=lambda self: unless_features(self.dim) if self.join == "concat" else "")
    def forward(self, input: Any) -> Any:
        """The results of all branches as one tensor."""
        outputs = [branch(input) for branch in self.children()]
        return (
            engine.cat(outputs, self.dim) if self.join == "concat" else sum(outputs[1:], outputs[0])
        )


def _obstacle(layer: RecurrentStates) -> str:
    """Why a recurrent layer does not work step by step; "" where it does."""
    if layer.last:
        return "gives the state of the last step only"
    if layer.bidirectional:
        return "sees later steps, bidirectional is True"
    return unless_random(layer, layer.dropout)


class RecurrentStates(nn.StatefulModule, Recurrent):
    """A recurrent layer that gives one tensor: the states of all steps, or of the last one.

    With two directions the last one of each, side by side: each has then seen everything.
    """

    def __init_subclass__(cls, **keywords: object) -> None:
        super().__init_subclass__(**keywords)
        # Patterns of `freeze` and `lora`, messages and --compare torch have the engine's name.
        cls.__name__ = cls.__name__.removesuffix("States")

    def __init__(self, *args: Any, last: bool = False, **keywords: Any) -> None:
        options = {"batch_first": True, **keywords}
        super().__init__(*args, **options)
        self.last = last

    @step_by_step(unless=_obstacle)
    def forward(self, input: Any, hx: Any = None) -> Any:
        """What the layer gives, without the rest; it begins where the step before ended."""
        before = self.state
        states, end = super().forward(input, before if hx is None else hx)
        self.state = end
        if not self.last:
            return states
        h_n = end[0] if isinstance(end, tuple) else end
        return engine.cat([h_n[-1 - i] for i in reversed(range(self.directions))], -1)


class LSTMStates(RecurrentStates, nn.LSTM):
    """Long short-term memory: a state of hidden_size numbers after each step, or the last one."""


class GRUStates(RecurrentStates, nn.GRU):
    """Gated recurrent unit: a state of hidden_size numbers after each step, or the last one."""


class RNNStates(RecurrentStates, nn.RNN):
    """The plain recurrent layer: a state of hidden_size numbers after each step, or the last."""
