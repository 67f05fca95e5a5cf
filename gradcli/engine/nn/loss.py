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
    "MultiLabelMarginLoss",
    "TripletMarginWithDistanceLoss",
    "LOSSES",
    "MARGIN_LOSSES",
]

from collections.abc import Callable
from dataclasses import KW_ONLY, field
from typing import Literal

from gradcli.dataclass import dataclass
from gradcli.engine.kind import NotNegative, Portion, Positive, Reduction
from gradcli.engine.nn import functional as F
from gradcli.engine.nn.function_module import FunctionModule, calls
from gradcli.engine.nn.module import Module
from gradcli.engine.tensor import Tensor


@dataclass(eq=False, repr=False)
class Loss(FunctionModule):
    """What nearly all losses have: a reduction."""

    reduction: Reduction = field(default="mean", kw_only=True)


class PairLoss(Loss):
    """A loss of an input and a target."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape, where the class says nothing else."""
        return self.call(input, target)


@calls(F.cross_entropy)
class CrossEntropyLoss(PairLoss):
    """-log softmax(input)[target], each class times its weight, without ignore_index.

    Scores (N, C, ...) against classes (N, ...), or probabilities of the scores' shape.
    """

    weight: Tensor | None = None
    _: KW_ONLY
    ignore_index: int = -100
    label_smoothing: Portion = 0.0


@calls(F.nll_loss)
class NLLLoss(PairLoss):
    """-input[target], each class times its weight, without ignore_index.

    Logarithms of probabilities (N, C, ...) against classes (N, ...).
    """

    weight: Tensor | None = None
    _: KW_ONLY
    ignore_index: int = -100


@calls(F.mse_loss)
class MSELoss(PairLoss):
    """The mean of (input - target)^2."""


@calls(F.l1_loss)
class L1Loss(PairLoss):
    """The mean of |input - target|."""


@calls(F.smooth_l1_loss)
class SmoothL1Loss(PairLoss):
    """|input - target|, but with a square where it is below beta."""

    _: KW_ONLY
    beta: NotNegative = 1.0


@calls(F.huber_loss)
class HuberLoss(PairLoss):
    """Half the square of the difference, but a straight line from delta on."""

    reduction: Reduction = "mean"
    delta: Positive = 1.0


@calls(F.binary_cross_entropy)
class BCELoss(PairLoss):
    """Binary cross-entropy of probabilities; targets lie between 0 and 1."""

    weight: Tensor | None = None


@calls(F.binary_cross_entropy_with_logits)
class BCEWithLogitsLoss(PairLoss):
    """Binary cross-entropy of sigmoid(input); targets of 1 count pos_weight times.

    Targets lie between 0 and 1.
    """

    weight: Tensor | None = None
    _: KW_ONLY
    pos_weight: Tensor | None = None


@calls(F.kl_div)
class KLDivLoss(FunctionModule):
    """target (log(target) - input): how much more the target says than exp(input)."""

    _: KW_ONLY
    reduction: Reduction | Literal["batchmean"] = "mean"
    log_target: bool = False

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Two tensors of one shape."""
        return self.call(input, target)


@calls(F.cosine_embedding_loss)
class CosineEmbeddingLoss(Loss):
    """1 - cos for rows that belong together, max(0, cos - margin) for others."""

    margin: float = 0.0

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Rows (N, D) twice, targets 1 or -1 (N,)."""
        return self.call(input1, input2, target)


@calls(F.margin_ranking_loss)
class MarginRankingLoss(Loss):
    """max(0, margin - target (input1 - input2))."""

    margin: float = 0.0

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Two inputs, and 1 or -1 for each pair."""
        return self.call(input1, input2, target)


@calls(F.hinge_embedding_loss)
class HingeEmbeddingLoss(PairLoss):
    """The input, a distance, where target is 1, max(0, margin - input) where it is -1."""

    margin: float = 1.0


@calls(F.soft_margin_loss)
class SoftMarginLoss(PairLoss):
    """log(1 + exp(-target input)), for scores and 1 or -1 for each."""


@calls(F.multilabel_soft_margin_loss)
class MultiLabelSoftMarginLoss(PairLoss):
    """Binary cross-entropy of logits, its mean over the classes.

    Scores (..., C), and 0 or 1 for each.
    """

    weight: Tensor | None = None


@calls(F.multi_margin_loss)
class MultiMarginLoss(PairLoss):
    """Every other class should be below the target's by the margin.

    Scores (N, C) against classes (N,).
    """

    p: Literal[1, 2] = 1
    margin: float = 1.0
    weight: Tensor | None = None


@calls(F.triplet_margin_loss)
class TripletMarginLoss(Loss):
    """max(0, margin + distance to the positive - distance to the negative)."""

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Three times rows (N, D) or (D,)."""
        return self.call(anchor, positive, negative)


@calls(F.gaussian_nll_loss)
class GaussianNLLLoss(Loss):
    """Minus the logarithm of a normal distribution with mean input and variance var."""

    _: KW_ONLY
    full: bool = False
    eps: Positive = 1e-6

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """Means and targets of one shape, and variances for each or for some at once."""
        return self.call(input, target, var)


@calls(F.poisson_nll_loss)
class PoissonNLLLoss(PairLoss):
    """Minus the logarithm of a Poisson distribution whose rate is exp(input), or input."""

    log_input: bool = True
    full: bool = False
    _: KW_ONLY
    eps: float = 1e-8


@calls(F.cosine_similarity)
class CosineSimilarity(FunctionModule):
    """The cosine of the angle between two tensors along a dimension."""

    dim: int = 1
    eps: float = 1e-8

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Two tensors that broadcast against each other."""
        return self.call(x1, x2)


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


@calls(F.multilabel_margin_loss)
class MultiLabelMarginLoss(PairLoss):
    """Every class that is no label should be below every label by 1.

    Scores (N, C) or (C,), and as many classes: the labels are those before the first -1.
    """


@calls(F.triplet_margin_with_distance_loss)
class TripletMarginWithDistanceLoss(Loss):
    """max(0, margin + distance to the positive - distance to the negative)."""

    _: KW_ONLY
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None
    margin: float = 1.0
    swap: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.distance_function is None:
            self.distance_function = PairwiseDistance()

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Whatever the distance takes."""
        return self.call(anchor, positive, negative)


LOSSES: dict[str, type[Module]] = {name: globals()[name] for name in __all__[:-2]}
MARGIN_LOSSES = {name: LOSSES[name] for name in __all__[-4:-2]}
