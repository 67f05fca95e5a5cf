"""Losses of margins, angles and distributions, written with simpler ops."""

from __future__ import annotations

from collections.abc import Callable
from math import log, pi

from gradcli.engine.function import function
from gradcli.engine.ops import creation
from gradcli.engine.ops.loss_pairs import checked_reduction, reduced
from gradcli.engine.shape import broadcast, dim_index
from gradcli.engine.tensor import OPS, Tensor
from gradcli.errors import OptionError, ShapeError

Distance = Callable[[Tensor, Tensor], Tensor]


def _at_least(x: Tensor, low: float) -> Tensor:
    """The larger of both; as in torch all of the gradient goes to x where they are equal."""
    made: Tensor = OPS["clamp"](x, min=low)
    return made


def _finished(name: str, terms: Tensor, reduction: str) -> Tensor:
    checked_reduction(name, reduction)
    return reduced(terms, reduction)


@function(method=False)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between x1 and x2 along `dim`; no length counts as below eps."""
    shape = broadcast(x1.shape, x2.shape, "cosine_similarity")
    at = dim_index(dim, len(shape), "cosine_similarity")
    directions = []
    for x in (OPS["expand"](x1, shape), OPS["expand"](x2, shape)):
        squares = OPS["sum"](x * x, at, keepdim=True)
        directions.append(x / OPS["sqrt"](_at_least(squares, eps * eps)))
    cosine: Tensor = OPS["sum"](directions[0] * directions[1], at)
    return cosine


@function(method=False)
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dimension."""
    distance: Tensor = OPS["norm"](x1 - x2 + eps, p, -1, keepdim)
    return distance


@function(method=False)
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1, of two rows each."""
    if target.ndim > 1 or input1.ndim != target.ndim + 1 or input2.ndim != input1.ndim:
        raise ShapeError(
            "cosine_embedding_loss: needs two vectors and a target without dimensions, or two "
            f"matrices and a vector, got {input1.shape}, {input2.shape} and {target.shape}"
        )
    tiny = 1e-12
    lengths = [OPS["sum"](x * x, -1) + tiny for x in (input1, input2)]
    cosine = OPS["sum"](input1 * input2, -1) / OPS["sqrt"](lengths[0] * lengths[1])
    near = OPS["where"](target == 1, 1 - cosine, 0.0)
    far = OPS["where"](target == -1, _at_least(cosine - margin, 0.0), 0.0)
    return _finished("cosine_embedding_loss", near + far, reduction)


@function(method=False)
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin - target (input1 - input2)): target 1 wants input1 on top, -1 input2."""
    terms = _at_least(-target * (input1 - input2) + margin, 0.0)
    return _finished("margin_ranking_loss", terms, reduction)


@function(method=False)
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """The input, a distance, where target is 1; max(0, margin - input) where it is -1."""
    far = OPS["where"](target != 1, _at_least(margin - input, 0.0), 0.0)
    near = OPS["where"](target != -1, input, 0.0)
    return _finished("hinge_embedding_loss", near + far, reduction)


@function(method=False)
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target input)), the target being 1 or -1; large inputs do not overflow."""
    towards = OPS["to"](target, input.dtype) * input
    ones = creation.ones(towards.shape, dtype=towards.dtype)
    terms = OPS["binary_cross_entropy_with_logits"](towards, ones, reduction="none")
    return _finished("soft_margin_loss", terms, reduction)


@function(method=False)
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Binary cross-entropy of logits, its mean over the classes in the last dimension."""
    truths = OPS["to"](target, input.dtype)
    terms = OPS["binary_cross_entropy_with_logits"](input, truths, weight, reduction="none")
    means = OPS["sum"](terms, -1) / input.shape[-1]
    return _finished("multilabel_soft_margin_loss", means, reduction)


@function(method=False)
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Sum of max(0, margin - input[target] + input[i])^p / classes over every i but the target.

    With weight each sample counts as often as its target's class.
    """
    if p not in (1, 2):
        raise OptionError(f"multi_margin_loss: p must be 1 or 2, got {p}")
    if input.ndim not in (1, 2) or target.shape != input.shape[:-1]:
        raise ShapeError(
            "multi_margin_loss: needs scores (N, C) or (C,) and a class for each row, got "
            f"{input.shape} and {target.shape}"
        )
    column = OPS["unsqueeze"](target, -1)
    terms = OPS["relu"](margin - OPS["gather"](input, -1, column) + input)
    if p == 2:
        terms = terms * terms
    others = column != creation.arange(input.shape[-1])
    if weight is not None:
        terms = terms * OPS["unsqueeze"](weight[target], -1)
    sums = OPS["sum"](terms * OPS["to"](others, input.dtype), -1) / input.shape[-1]
    return _finished("multi_margin_loss", sums, reduction)


@function(method=False)
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Sum of max(0, 1 - input[label] + input[i]) / classes over all labels and other classes i.

    The labels of a row are the classes in its target before the first -1.
    """
    if input.ndim not in (1, 2) or target.shape != input.shape:
        raise ShapeError(
            "multilabel_margin_loss: needs scores (N, C) or (C,) and a target of the same shape, "
            f"got {input.shape} and {target.shape}"
        )
    classes = input.shape[-1]
    named = OPS["to"](OPS["cumprod"](OPS["to"](target >= 0, input.dtype), -1), input.dtype)
    # (..., labels, classes): where a label stands, and which classes are none.
    hit = OPS["to"](OPS["unsqueeze"](target, -1) == creation.arange(classes), input.dtype)
    others = 1 - OPS["sum"](hit * OPS["unsqueeze"](named, -1), -2, keepdim=True)
    scores = OPS["unsqueeze"](input, -2)
    chosen = OPS["sum"](hit * scores, -1, keepdim=True)
    pairs = OPS["relu"](1 - chosen + scores) * OPS["unsqueeze"](named, -1) * _at_least(others, 0.0)
    sums = OPS["sum"](OPS["sum"](pairs, -1), -1) / classes
    return _finished("multilabel_margin_loss", sums, reduction)


@function(method=False)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + distance to positive - distance to negative) (Schroff et al. 2015).

    With swap the distance from positive to negative counts where it is the shorter one.
    """

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    three = (anchor, positive, negative)
    return _triplets("triplet_margin_loss", three, distance, margin, swap, reduction)


@function(method=False)
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Distance | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """triplet_margin_loss with a distance of one's own, such as 1 - cosine_similarity."""
    three, distance = (anchor, positive, negative), distance_function or pairwise_distance
    name = "triplet_margin_with_distance_loss"
    return _triplets(name, three, distance, margin, swap, reduction)


def _triplets(
    name: str,
    three: tuple[Tensor, Tensor, Tensor],
    distance: Distance,
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    if not margin > 0:
        raise OptionError(f"{name}: margin must be above 0, got {margin}")
    anchor, positive, negative = three
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = OPS["minimum"](far, distance(positive, negative))
    return _finished(name, _at_least(margin + near - far, 0.0), reduction)


@function(method=False)
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """(log(var) + (input - target)^2 / var) / 2, var at least eps; with full, + log(2 pi) / 2."""
    given = var if isinstance(var, Tensor) else creation.full(input.shape, var, dtype=input.dtype)
    spread = _fitting_variance(input, given)
    # The gradient goes by where eps is taken instead.
    spread = spread + (_at_least(spread, eps) - spread).detach()
    apart = input - target
    terms = 0.5 * (OPS["log"](spread) + apart * apart / spread)
    if full:
        terms = terms + 0.5 * log(2 * pi)
    return _finished("gaussian_nll_loss", terms, reduction)


def _fitting_variance(input: Tensor, var: Tensor) -> Tensor:
    """One variance for each number, or for all along one dimension."""
    if var.shape == input.shape:
        return var
    if var.shape == input.shape[:-1]:
        column: Tensor = OPS["unsqueeze"](var, -1)
        return column
    pairs = zip(var.shape, input.shape, strict=False)
    other = [mine for mine, wanted in pairs if mine != wanted]
    if var.ndim != input.ndim or other != [1]:
        raise ShapeError(
            f"gaussian_nll_loss: var {var.shape} does not fit input {input.shape}: it may lack "
            "the last dimension, or have size 1 in one"
        )
    return var


@function(method=False)
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """exp(input) - target input; input - target log(input + eps) where log_input is false.

    With full, Stirling's approximation of log(target!) is added where target is above 1.
    """
    if log_input:
        terms = OPS["exp"](input) - target * input
    else:
        terms = input - target * OPS["log"](input + eps)
    if full:
        stirling = target * OPS["log"](target) - target + 0.5 * OPS["log"](2 * pi * target)
        terms = terms + OPS["where"](target > 1, stirling, 0.0)
    return _finished("poisson_nll_loss", terms, reduction)
