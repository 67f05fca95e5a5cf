"""Losses as modules: CrossEntropyLoss and MSELoss."""

from __future__ import annotations

from gradcli.engine.nn import functional as F
from gradcli.engine.nn.module import Module
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError


def _checked(reduction: str, name: str) -> str:
    if reduction not in ("none", "mean", "sum"):
        raise OptionError(f"{name}: reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
    return reduction


class CrossEntropyLoss(Module):
    """-log softmax(input)[target], each class times its weight, without ignore_index."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.reduction = _checked(reduction, "CrossEntropyLoss")
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Scores (N, C, ...) against classes (N, ...)."""
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class MSELoss(Module):
    """The mean of (input - target)^2."""

    def __init__(self, *, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = _checked(reduction, "MSELoss")

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape."""
        return F.mse_loss(input, target, reduction=self.reduction)
