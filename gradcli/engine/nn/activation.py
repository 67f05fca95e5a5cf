"""Activations as modules: ReLU, GELU, Tanh, Sigmoid, Softmax. They have no weights."""

from __future__ import annotations

from gradcli.engine.nn import functional as F
from gradcli.engine.nn.module import Module
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError


class ReLU(Module):
    """max(x, 0)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        if inplace:
            raise OptionError("ReLU: inplace must be False; the result is the same")

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.relu(input)


class GELU(Module):
    """x times the normal distribution's share below x."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        if approximate not in ("none", "tanh"):
            raise OptionError(f"GELU: approximate must be 'none' or 'tanh', got {approximate!r}")
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        """As torch shows it."""
        return f"approximate={self.approximate!r}"


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.tanh(input)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.sigmoid(input)


class Softmax(Module):
    """exp(x) / sum(exp(x)) along `dim`."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The same shape; sums along dim are 1."""
        if self.dim is None:
            raise OptionError("Softmax: say along which dimension: Softmax(dim=-1)")
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """As torch shows it."""
        return f"dim={self.dim}"
