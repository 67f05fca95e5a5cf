"""Modules that the engine does not have because torch has no name for them."""

from __future__ import annotations

from gradcli.engine import Tensor, nn


class Residual(nn.Sequential):
    """x + layers(x)."""

    def forward(self, x: Tensor) -> Tensor:
        """The input added to what the layers make of it."""
        return x + super().forward(x)
