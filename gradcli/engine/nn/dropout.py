"""Dropout: numbers, or whole channels, left out at random while training."""

from __future__ import annotations

__all__ = ["Dropout", "Dropout1d", "Dropout2d", "AlphaDropout"]

from gradcli.engine.kind import Portion
from gradcli.engine.nn import functional as F
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.steps import step_by_step, unless_random
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError


class _Dropout(Module):
    """What all kinds share: a probability."""

    _repr_format = "p={0.p}, inplace=False"

    def __init__(self, p: Portion = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if inplace:
            name = type(self).__name__
            raise OptionError(f"{name}: inplace must be False; the result is the same")
        self.p = p


def _obstacle(layer: _Dropout) -> str:
    return unless_random(layer, layer.p)


class Dropout(_Dropout):
    """In training, zeroes each number with probability p and scales the others by 1 / (1 - p)."""

    @step_by_step(unless=_obstacle)
    def forward(self, input: Tensor) -> Tensor:
        """The input itself in evaluation mode."""
        return F.dropout(input, self.p, self.training)


class Dropout1d(_Dropout):
    """In training, zeroes each channel of (N, C, L) or (C, L) with probability p."""

    @step_by_step(unless=_obstacle)
    def forward(self, input: Tensor) -> Tensor:
        """The input itself in evaluation mode."""
        return F.dropout1d(input, self.p, self.training)


class Dropout2d(_Dropout):
    """In training, zeroes each channel of (N, C, H, W) with probability p."""

    @step_by_step(unless=_obstacle)
    def forward(self, input: Tensor) -> Tensor:
        """The input itself in evaluation mode."""
        return F.dropout2d(input, self.p, self.training)


class AlphaDropout(_Dropout):
    """Dropout that keeps the mean 0 and variance 1 of what SELU gives (Klambauer et al. 2017)."""

    @step_by_step(unless=_obstacle)
    def forward(self, input: Tensor) -> Tensor:
        """The input itself in evaluation mode."""
        return F.alpha_dropout(input, self.p, self.training)
