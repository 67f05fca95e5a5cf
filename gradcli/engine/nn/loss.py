"""Losses as modules, with the names and arguments of torch.nn."""

from __future__ import annotations

__all__ = [
    "CrossEntropyLoss",
    "NLLLoss",
    "MSELoss",
    "L1Loss",
    "SmoothL1Loss",
    "HuberLoss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "KLDivLoss",
    "CosineEmbeddingLoss",
    "MarginRankingLoss",
    "HingeEmbeddingLoss",
    "SoftMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "TripletMarginLoss",
    "GaussianNLLLoss",
    "PoissonNLLLoss",
    "CosineSimilarity",
    "PairwiseDistance",
    "LOSSES",
]

from typing import Literal

from gradcli.engine.kind import NotNegative, Portion, Positive
from gradcli.engine.nn import functional as F
from gradcli.engine.nn.module import Module
from gradcli.engine.tensor import Tensor

Reduction = Literal["none", "mean", "sum"]


class Loss(Module):
    """What all losses have: a reduction."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction


class CrossEntropyLoss(Loss):
    """-log softmax(input)[target], each class times its weight, without ignore_index."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        label_smoothing: Portion = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Scores (N, C, ...) against classes (N, ...), or probabilities of the scores' shape."""
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(Loss):
    """-input[target], each class times its weight, without ignore_index."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Logarithms of probabilities (N, C, ...) against classes (N, ...)."""
        return F.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class MSELoss(Loss):
    """The mean of (input - target)^2."""

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape."""
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(Loss):
    """The mean of |input - target|."""

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape."""
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(Loss):
    """|input - target|, but with a square where it is below beta."""

    def __init__(self, *, reduction: Reduction = "mean", beta: NotNegative = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(Loss):
    """Half the square of the difference, but a straight line from delta on."""

    def __init__(self, reduction: Reduction = "mean", delta: Positive = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class BCELoss(Loss):
    """Binary cross-entropy of probabilities."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape, between 0 and 1."""
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(Loss):
    """Binary cross-entropy of sigmoid(input); targets of 1 count pos_weight times."""

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        *,
        reduction: Reduction = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape, targets between 0 and 1."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class KLDivLoss(Loss):
    """target (log(target) - input): how much more the target says than exp(input)."""

    def __init__(
        self, *, reduction: Reduction | Literal["batchmean"] = "mean", log_target: bool = False
    ) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class CosineEmbeddingLoss(Loss):
    """1 - cos for rows that belong together, max(0, cos - margin) for others."""

    def __init__(self, margin: float = 0.0, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Rows (N, D) twice, targets 1 or -1 (N,)."""
        return F.cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class MarginRankingLoss(Loss):
    """max(0, margin - target (input1 - input2))."""

    def __init__(self, margin: float = 0.0, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Two inputs, and 1 or -1 for each pair."""
        return F.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class HingeEmbeddingLoss(Loss):
    """The input where target is 1, max(0, margin - input) where it is -1."""

    def __init__(self, margin: float = 1.0, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Distances, and 1 or -1 for each."""
        return F.hinge_embedding_loss(input, target, self.margin, self.reduction)


class SoftMarginLoss(Loss):
    """log(1 + exp(-target input))."""

    def __init__(self, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Scores, and 1 or -1 for each."""
        return F.soft_margin_loss(input, target, self.reduction)


class MultiLabelSoftMarginLoss(Loss):
    """Binary cross-entropy of logits, its mean over the classes."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, *, reduction: Reduction = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Scores (..., C), and 0 or 1 for each."""
        return F.multilabel_soft_margin_loss(input, target, self.weight, self.reduction)


class MultiMarginLoss(Loss):
    """Every other class should be below the target's by the margin."""

    weight: Tensor | None

    def __init__(
        self,
        p: Literal[1, 2] = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        *,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction)
        self.p = p
        self.margin = margin
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Scores (N, C) against classes (N,)."""
        options = (self.p, self.margin, self.weight, self.reduction)
        return F.multi_margin_loss(input, target, *options)


class TripletMarginLoss(Loss):
    """max(0, margin + distance to the positive - distance to the negative)."""

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        *,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Three times rows (N, D) or (D,)."""
        options = (self.margin, self.p, self.eps, self.swap, self.reduction)
        return F.triplet_margin_loss(anchor, positive, negative, *options)


class GaussianNLLLoss(Loss):
    """Minus the logarithm of a normal distribution with mean input and variance var."""

    def __init__(
        self, *, full: bool = False, eps: Positive = 1e-6, reduction: Reduction = "mean"
    ) -> None:
        super().__init__(reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """Means and targets of one shape, and variances for each or for some at once."""
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class PoissonNLLLoss(Loss):
    """Minus the logarithm of a Poisson distribution whose rate is exp(input), or input."""

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        *,
        eps: float = 1e-8,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape."""
        options = (self.log_input, self.full, self.eps, self.reduction)
        return F.poisson_nll_loss(input, target, *options)


class CosineSimilarity(Module):
    """The cosine of the angle between two tensors along a dimension."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Two tensors that broadcast against each other."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of the difference along the last dimension."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Two tensors that broadcast against each other."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


LOSSES: dict[str, type[Module]] = {name: globals()[name] for name in __all__ if name != "LOSSES"}
