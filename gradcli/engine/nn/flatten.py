"""Flatten: dimensions merged into one."""

from __future__ import annotations

from gradcli.engine.nn.module import Module
from gradcli.engine.ops.movement import flatten
from gradcli.engine.tensor import Tensor


class Flatten(Module):
    """Dimensions start_dim to end_dim merged into one; by default all but the batch's."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """The same numbers in fewer dimensions."""
        return flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """As torch shows it."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
