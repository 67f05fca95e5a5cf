"""Flatten, Unflatten and Identity: the same numbers, in other dimensions or in the same."""

from __future__ import annotations

__all__ = ["Flatten", "Unflatten", "Identity"]

from collections.abc import Sequence
from typing import Any

from gradcli.engine.nn.module import Module
from gradcli.engine.nn.steps import step_by_step
from gradcli.engine.ops.shape.reshape import flatten, reshape
from gradcli.engine.shape import Shape, dim_index
from gradcli.engine.tensor import Tensor


class Flatten(Module):
    """Merges all dimensions but the batch's into one, or those from start_dim to end_dim."""

    _repr_format = "start_dim={0.start_dim}, end_dim={0.end_dim}"

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """The same numbers in fewer dimensions."""
        return flatten(input, self.start_dim, self.end_dim)


class Unflatten(Module):
    """Dimension `dim` spread over several, the opposite of Flatten; one size may be -1."""

    _repr_format = "dim={0.dim}, unflattened_size={0.unflattened_size}"

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size: Shape = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """The same numbers in more dimensions."""
        at = dim_index(self.dim, input.ndim, "Unflatten")
        shape = (*input.shape[:at], *self.unflattened_size, *input.shape[at + 1 :])
        return reshape(input, shape)


class Identity(Module):
    """Returns its input; accepts any arguments, so that it can replace any layer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    @step_by_step
    def forward(self, input: Tensor) -> Tensor:
        """The input itself."""
        return input
