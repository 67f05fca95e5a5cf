"""The moving average of the weights that evaluation and prediction use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gradcli import engine

if TYPE_CHECKING:
    from gradcli.engine import DType, Tensor, nn
    from gradcli.train.job import Ema


class Average:
    """average = decay average + (1 - decay) value after each step; it begins at the first values.

    The values are the trained weights and, unless the settings leave them out, the floating-point
    buffers: running statistics must match the weights they are used with.
    """

    def __init__(self, model: nn.Module, settings: Ema) -> None:
        self._settings = settings
        self._values: dict[str, Tensor] = {
            name: parameter
            for name, parameter in model.named_parameters()
            if parameter.requires_grad
        }
        if settings.buffers:
            buffers = dict(model.named_buffers())
            self._values |= {
                name: buffers[name]
                for name in model.state_dict()
                if name in buffers and buffers[name].is_floating_point()
            }
        self.tensors: dict[str, Tensor] = {
            name: value.detach().clone() for name, value in self._values.items()
        }

    def decay(self, step: int) -> float:
        """The decay at `step`, from 1: with a warm-up, at most (1 + step) / (10 + step).

        So the average is at any time of the newest tenth of the steps at least, and the first
        values, which nothing has trained, are soon forgotten.
        """
        decay = self._settings.decay
        return min(decay, (1 + step) / (10 + step)) if self._settings.warmup else decay

    def update(self, decay: Tensor) -> None:
        """Take in the values of a step; `decay` is a float64 scalar."""
        shares: dict[DType, tuple[Tensor, Tensor]] = {}
        with engine.no_grad():
            for name, average in self.tensors.items():
                if average.dtype not in shares:
                    shares[average.dtype] = decay.to(average.dtype), (1 - decay).to(average.dtype)
                old, new = shares[average.dtype]
                average.copy_(old * average + new * self._values[name])

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """The model with the averages as its weights and buffers."""
        spare = {name: value.detach().clone() for name, value in self._values.items()}
        self._give(self.tensors)
        try:
            yield
        finally:
            self._give(spare)

    def _give(self, tensors: dict[str, Tensor]) -> None:
        with engine.no_grad():
            for name, tensor in tensors.items():
                self._values[name].copy_(tensor)
