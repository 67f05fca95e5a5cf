"""Dropout: numbers left out at random while training."""

from __future__ import annotations

from gradcli.engine.nn import functional as F
from gradcli.engine.nn.module import Module
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError


class Dropout(Module):
    """While training, each number becomes 0 with probability p, the others grow by 1 / (1 - p)."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise OptionError(f"Dropout: p must be from 0 to 1, got {p}")
        if inplace:
            raise OptionError("Dropout: inplace must be False; the result is the same")
        self.p = p

    def forward(self, input: Tensor) -> Tensor:
        """The input itself in evaluation mode."""
        return F.dropout(input, self.p, self.training)

    def extra_repr(self) -> str:
        """As torch shows it."""
        return f"p={self.p}, inplace=False"
