"""More losses of margins as modules: distances of one's own, several labels a sample."""

from __future__ import annotations

__all__ = ["MultiLabelMarginLoss", "TripletMarginWithDistanceLoss", "MARGIN_LOSSES"]

from collections.abc import Callable

from gradcli.engine.nn import functional as F
from gradcli.engine.nn.loss import Loss, PairwiseDistance, Reduction
from gradcli.engine.nn.module import Module
from gradcli.engine.tensor import Tensor


class MultiLabelMarginLoss(Loss):
    """Every class that is no label should be below every label by 1."""

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Scores (N, C) or (C,), and as many classes: the labels are those before the first -1."""
        return F.multilabel_margin_loss(input, target, self.reduction)


class TripletMarginWithDistanceLoss(Loss):
    """max(0, margin + distance to the positive - distance to the negative)."""

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction)
        self.distance_function = distance_function or PairwiseDistance()
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Whatever the distance takes."""
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


MARGIN_LOSSES: dict[str, type[Module]] = {
    loss.__name__: loss for loss in (MultiLabelMarginLoss, TripletMarginWithDistanceLoss)
}
