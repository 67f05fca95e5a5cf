"""Modules that the engine does not have because torch has no name for them."""

from __future__ import annotations

from typing import Any

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.nn.recurrent import Recurrent


class Residual(nn.Sequential):
    """x + layers(x)."""

    def forward(self, input: Any) -> Any:
        """The input added to what the layers make of it."""
        return input + super().forward(input)


class States(Recurrent):
    """A recurrent layer that gives one tensor: the states of all steps, or of the last one.

    With two directions the last one of each, side by side: each has then seen everything.
    """

    last = False

    def forward(self, input: Any, hx: Any = None) -> Any:
        """What the layer gives, without the rest."""
        states, end = super().forward(input, hx)
        if not self.last:
            return states
        h_n = end[0] if isinstance(end, tuple) else end
        return engine.cat([h_n[-1 - i] for i in reversed(range(self.directions))], -1)


class LSTM(States, nn.LSTM):
    """The states of an LSTM."""


class GRU(States, nn.GRU):
    """The states of a GRU."""


class RNN(States, nn.RNN):
    """The states of a plain recurrent layer."""
