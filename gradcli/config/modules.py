"""Modules that the engine does not have because torch has no name for them."""

from __future__ import annotations

from typing import Any

from gradcli.engine import nn


class Residual(nn.Sequential):
    """x + layers(x)."""

    def forward(self, input: Any) -> Any:
        """The input added to what the layers make of it."""
        return input + super().forward(input)
