"""Losses of margins, angles and distributions, written with simpler ops."""

from __future__ import annotations

from math import log, pi

from gradcli.engine import table
from gradcli.engine.composite import function
from gradcli.engine.kind import NotNegative
from gradcli.engine.ops.creation import creation
from gradcli.engine.ops.creation.ranges import arange
from gradcli.engine.ops.elementwise.slopes import TINY
from gradcli.engine.ops.loss.regression import checked_reduction, reduced
from gradcli.engine.sample import index, positive, sample, sign, unit, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError


def at_least(x: Tensor, low: float) -> Tensor:
    """The larger of both; as in torch all of the gradient goes to x where they are equal."""
    return table.clamp(x, min=low)


def one_shape(name: str, input: Tensor, target: Tensor) -> None:
    """Refuse what would broadcast: (4,) against (4, 1) is (4, 4), and nearly always a mistake."""
    if input.shape != target.shape:
        raise ShapeError(
            f"{name}: input {input.shape} and target {target.shape} must have one shape"
        )


def one_rank(name: str, **tensors: Tensor) -> None:
    """Refuse what would broadcast over dimensions that one of them lacks."""
    if len({x.ndim for x in tensors.values()}) > 1:
        shapes = ", ".join(f"{key} {x.shape}" for key, x in tensors.items())
        raise ShapeError(f"{name}: {shapes} must have the same number of dimensions")


def finished(name: str, terms: Tensor, reduction: str) -> Tensor:
    """The terms themselves, their mean or their sum; refuses anything else."""
    checked_reduction(name, reduction)
    return reduced(terms, reduction)


@function(
    samples=[
        sample((3, 5), (3, 5), sign((3,))),
        sample((4, 2), (4, 2), sign((4,)), margin=0.25, reduction="none"),
        sample((3,), (3,), sign(())),
        sample((2, 1), (2, 1), sign((2,)), margin=-0.5, reduction="sum"),
    ],
    method=False,
)
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
    lengths = [table.sum(x * x, -1) + TINY for x in (input1, input2)]
    cosine = table.sum(input1 * input2, -1) / table.sqrt(lengths[0] * lengths[1])
    near = table.where(target == 1, 1 - cosine, 0.0)
    far = table.where(target == -1, at_least(cosine - margin, 0.0), 0.0)
    return finished("cosine_embedding_loss", near + far, reduction)


@function(
    samples=[
        sample((3, 5), (3, 5), sign((3, 5))),
        sample((2, 1, 3), (2, 4, 3), sign((1, 4, 1)), margin=0.5, reduction="none"),
        sample((4,), (4,), sign((4,)), margin=-0.5, reduction="sum"),
    ],
    method=False,
)
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin - target (input1 - input2)): target 1 wants input1 on top, -1 input2."""
    one_rank("margin_ranking_loss", input1=input1, input2=input2, target=target)
    terms = at_least(-target * (input1 - input2) + margin, 0.0)
    return finished("margin_ranking_loss", terms, reduction)


@function(
    samples=[
        sample((3, 5), sign((3, 5))),
        sample((2, 1), sign((2, 1)), margin=0.5, reduction="none"),
        sample(positive((4,)), sign((4,)), margin=2.0, reduction="sum"),
    ],
    method=False,
)
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """The input, a distance, where target is 1; max(0, margin - input) where it is -1."""
    one_shape("hinge_embedding_loss", input, target)
    far = table.where(target != 1, at_least(margin - input, 0.0), 0.0)
    near = table.where(target != -1, input, 0.0)
    return finished("hinge_embedding_loss", near + far, reduction)


@function(
    samples=[
        sample((3, 5), sign((3, 5))),
        sample((2, 1), sign((2, 1)), reduction="none"),
        sample((), sign(()), reduction="sum"),
    ],
    method=False,
)
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target input)), the target being 1 or -1; large inputs do not overflow."""
    one_shape("soft_margin_loss", input, target)
    terms = 0.0 - table.logsigmoid(table.to(target, input.dtype) * input)  # not -0
    return finished("soft_margin_loss", terms, reduction)


@function(
    samples=[
        sample((3, 5), unit((3, 5))),
        sample((2, 4), index((2, 4), 2), positive((4,)), reduction="none"),
        sample((2, 1, 3), unit((2, 1, 3)), positive((3,)), reduction="sum"),
    ],
    method=False,
)
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Binary cross-entropy of logits, its mean over the classes in the last dimension."""
    truths = table.to(target, input.dtype)
    terms = table.binary_cross_entropy_with_logits(input, truths, weight, reduction="none")
    means = table.sum(terms, -1) / input.shape[-1]
    return finished("multilabel_soft_margin_loss", means, reduction)


@function(
    samples=[
        sample((4, 5), index((4,), 5)),
        sample((3, 4), index((3,), 4), positive((4,)), p=2, reduction="none"),
        sample((5,), index((), 5), margin=0.5),
        sample((2, 1), index((2,), 1), reduction="sum"),
        sample((0, 3), index((0,), 3), reduction="none"),
    ],
    method=False,
)
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
    column = table.unsqueeze(target, -1)
    own = column == arange(input.shape[-1])
    terms = table.relu(table.where(own, 0.0, margin - table.gather(input, -1, column) + input))
    if p == 2:
        terms = terms * terms
    if weight is not None:
        terms = terms * table.unsqueeze(weight[target], -1)
    sums = table.sum(terms, -1) / input.shape[-1]
    return finished("multi_margin_loss", sums, reduction)


@function(
    samples=[
        sample((4, 5), index((4, 5), 5, -1)),
        sample((3, 6), index((3, 6), 6, -1), reduction="none"),
        sample((5,), index((5,), 5), reduction="sum"),
        sample((2, 1), index((2, 1), 1)),
        sample((0, 3), index((0, 3), 3), reduction="none"),
    ],
    wrong=[wrong(sample((2, 3), index((2,), 3)), "a target of the same shape")],
    method=False,
)
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
    indices = table.where(target == -1, 0, target)  # what stands there does not count
    label_scores = table.unsqueeze(table.gather(input, -1, indices), -1)
    valid = table.unsqueeze(table.cumprod(table.to(target >= 0, target.dtype), -1) > 0, -1)
    # (..., labels, classes): where a label stands, and which classes are none.
    hit = table.logical_and(table.unsqueeze(target, -1) == arange(classes), valid)
    label = table.any(hit, -2, keepdim=True)
    counts = table.logical_and(valid, table.logical_not(label))
    apart = 1 - label_scores + table.unsqueeze(input, -2)
    pairs = table.relu(table.where(counts, apart, 0.0))
    sums = table.sum(table.sum(pairs, -1), -1) / classes
    return finished("multilabel_margin_loss", sums, reduction)


@function(
    samples=[
        sample((3, 5), (3, 5), positive((3, 5))),
        sample((3, 4), (3, 4), positive((3,)), full=True, reduction="none"),
        sample((2, 3, 2), (2, 3, 2), positive((2, 1, 2)), eps=1.0, reduction="sum"),
        sample((4, 1), (4, 1), var=0.5),
        sample((0, 3), (0, 3), positive((0, 1)), reduction="sum"),
    ],
    method=False,
)
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | NotNegative,
    full: bool = False,
    eps: NotNegative = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """(log(var) + (input - target)^2 / var) / 2, var at least eps; with full, + log(2 pi) / 2."""
    one_shape("gaussian_nll_loss", input, target)
    if not isinstance(var, Tensor):
        var = creation.full(input.shape, var, dtype=input.dtype)
    spread = _fitting_variance(input, var)
    # The gradient goes by where eps is taken instead.
    spread = spread + (at_least(spread, eps) - spread).detach()
    apart = input - target
    terms = 0.5 * (table.log(spread) + apart * apart / spread)
    if full:
        terms = terms + 0.5 * log(2 * pi)
    return finished("gaussian_nll_loss", terms, reduction)


def _fitting_variance(input: Tensor, var: Tensor) -> Tensor:
    """One variance for each number, or for all along one dimension."""
    if var.shape == input.shape:
        return var
    if var.shape == input.shape[:-1]:
        return table.unsqueeze(var, -1)
    pairs = zip(var.shape, input.shape, strict=False)
    other = [size for size, expected in pairs if size != expected]
    if var.ndim != input.ndim or other != [1]:
        raise ShapeError(
            f"gaussian_nll_loss: var {var.shape} does not fit input {input.shape}: it may lack "
            "the last dimension, or have size 1 in one"
        )
    return var


@function(
    samples=[
        sample((3, 5), positive((3, 5))),
        sample(positive((4, 2)), positive((4, 2)), log_input=False, reduction="none"),
        sample((2, 1, 4), positive((2, 1, 4)), full=True, reduction="sum"),
        sample(unit((4,)), positive((4,)), log_input=False, full=True, eps=0.5),
    ],
    method=False,
)
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
    one_shape("poisson_nll_loss", input, target)
    if log_input:
        terms = table.exp(input) - target * input
    else:
        terms = input - target * table.log(input + eps)
    if full:
        stirling = target * table.log(target) - target + 0.5 * table.log(2 * pi * target)
        terms = terms + table.where(target > 1, stirling, 0.0)
    return finished("poisson_nll_loss", terms, reduction)
