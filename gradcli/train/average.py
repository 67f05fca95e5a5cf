"""The moving average of the weights that evaluation and prediction use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradcli import engine

if TYPE_CHECKING:
    from gradcli.engine import Tensor, nn


class Average:
    """average = decay average + (1 - decay) weight after each step; it begins at the weights.

    Only what is trained has an average; buffers such as running statistics are used as they are.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self._weights = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.tensors: dict[str, Tensor] = {
            name: p.detach().clone() for name, p in self._weights.items()
        }

    def update(self) -> None:
        """Take the weights of a step that was made."""
        with engine.no_grad():
            for name, average in self.tensors.items():
                weight = self._weights[name]
                average.copy_(self.decay * average + (1 - self.decay) * weight)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """The model with the averages as its weights."""
        spare = {name: p.detach().clone() for name, p in self._weights.items()}
        self._give(self.tensors)
        try:
            yield
        finally:
            self._give(spare)

    def _give(self, tensors: dict[str, Tensor]) -> None:
        with engine.no_grad():
            for name, tensor in tensors.items():
                self._weights[name].copy_(tensor)
