"""Losses by name: typed constructors, each the schema of its keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from gradcli import engine
from gradcli.config.fields import Weights
from gradcli.dataclass import dataclass
from gradcli.engine import Tensor
from gradcli.engine.kind import NotNegative, Portion, Positive
from gradcli.engine.nn import functional as F

if TYPE_CHECKING:
    from gradcli.data import DataSpec

LossFunction = Callable[[Tensor, Tensor], Tensor]
Postprocess = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class LossSpec:
    """A loss, and what it is for.

    Attributes:
        targets: kinds of targets: "labels" (class numbers), "values" or both.
        make: gives the function of outputs and targets.
        binary: labels are of two classes, and one output stands for the second of them.
        weights: how many weights it was given, one a class or value; None for any number.
        postprocess: by kind of targets, what turns outputs into scores of the classes or values,
            for metrics and predictions; none where they are that already.
        mixed: it takes labels that are probabilities of the classes as well.
        total_weight: the sum of the weights of targets in the mean, where they differ.
        attempt: tries it on outputs of a shape, and gives a warning; of own code, whose mistakes
            only show so.
        distance: it grows with |output - target| alone, so that targets may be scaled; None where
            nobody knows: they are scaled where that is asked for.
    """

    targets: tuple[str, ...]
    make: Callable[[], LossFunction]
    binary: bool = False
    weights: int | None = None
    postprocess: Mapping[str, Postprocess] = field(default_factory=dict)
    mixed: bool = False
    total_weight: Callable[[Tensor], Tensor] | None = None
    attempt: Callable[[tuple[int, ...], DataSpec], str] | None = None
    distance: bool | None = False


def cross_entropy(label_smoothing: Portion = 0.0, weight: Weights = ()) -> LossSpec:
    """-log softmax(outputs)[label], the mean over all labels, weighted by class.

    For labels; the model ends with one output per class, and `weight` has one number per class.
    """
    return _of_labels("cross_entropy", weight, label_smoothing=label_smoothing)


def nll(weight: Weights = ()) -> LossSpec:
    """-outputs[label], where outputs are log-probabilities; otherwise like cross_entropy."""
    return _of_labels("nll_loss", weight)


def mse() -> LossSpec:
    """(output - target)^2, the mean over all values; for values."""
    return _of_values("mse_loss", distance=True)


def l1() -> LossSpec:
    """|output - target|, the mean over all values; for values."""
    return _of_values("l1_loss", distance=True)


def smooth_l1(beta: NotNegative = 1.0) -> LossSpec:
    """|output - target|, but quadratic below beta; the mean over all values; for values."""
    return _of_values("smooth_l1_loss", distance=True, beta=beta)


def huber(delta: Positive = 1.0) -> LossSpec:
    """Half of (output - target)^2, linear beyond delta; the mean over all values; for values."""
    return _of_values("huber_loss", distance=True, delta=delta)


def bce() -> LossSpec:
    """Binary cross-entropy of probabilities, as after `sigmoid`; otherwise like bce_with_logits."""
    postprocess = {"labels": _scores_of_probabilities}
    return _of_values("binary_cross_entropy", binary=True, postprocess=postprocess)


def bce_with_logits(pos_weight: Positive | Weights = 1.0) -> LossSpec:
    """Binary cross-entropy of sigmoid(outputs); targets of 1 count pos_weight times.

    For values from 0 to 1 (a list of pos_weight has one number per value), or for two-class labels
    with a single output: positive means the second class.
    """
    many = len(pos_weight) if isinstance(pos_weight, tuple) else None
    options: dict[str, Any] = {} if pos_weight == 1 else {"pos_weight": pos_weight}
    return _of_values(
        "binary_cross_entropy_with_logits",
        binary=True,
        weights=many,
        postprocess={"labels": _scores_of_logits, "values": _sigmoid},
        **options,
    )


def kl(log_target: bool = False, reduction: Literal["batchmean", "mean"] = "batchmean") -> LossSpec:
    """Target (log(target) - output), where outputs are log-probabilities.

    For values that are probabilities.
    """
    options: dict[str, Any] = {"log_target": log_target, "reduction": reduction}
    return _of_values("kl_div", postprocess={} if log_target else {"values": _exp}, **options)


def poisson_nll(log_input: bool = True, full: bool = False, eps: Positive = 1e-8) -> LossSpec:
    """Negative log-likelihood of counts under a Poisson distribution with rates exp(outputs).

    For values that are counts.
    """
    options: dict[str, Any] = {"log_input": log_input, "full": full, "eps": eps}
    return _of_values(
        "poisson_nll_loss", postprocess={"values": _exp} if log_input else {}, **options
    )


def in_rows(function: LossFunction) -> LossFunction:
    """The function of a row of outputs a label; labels of a sequence are as many single labels.

    Classes stand last. Labels that were mixed are probabilities of them.
    """

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        rows = outputs.reshape(-1, outputs.shape[-1])
        shape = rows.shape if targets.dtype.is_floating_point else (-1,)
        return function(rows, targets.reshape(shape))

    return loss


def in_shape(function: LossFunction) -> LossFunction:
    """The function of outputs in the shape of their targets, numbers both."""

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        numbers = targets if targets.is_floating_point() else targets.to(outputs.dtype)
        return function(outputs.reshape(targets.shape), numbers)

    return loss


# How a loss sees outputs and targets, by their kind.
SHAPES: dict[str, Callable[[LossFunction], LossFunction]] = {"labels": in_rows, "values": in_shape}


def _of_labels(name: str, weight: Sequence[float], **options: Any) -> LossSpec:
    """A loss of torch's functions that takes one output a class."""

    def make() -> LossFunction:
        tensors = {"weight": engine.tensor(list(weight))} if weight else {}
        return in_rows(partial(getattr(F, name), **tensors, **options))

    mixed = name == "cross_entropy"
    total_weight = _total_weight(weight) if weight else None
    return LossSpec(
        ("labels",), make, weights=len(weight) or None, mixed=mixed, total_weight=total_weight
    )


def _total_weight(weight: Sequence[float]) -> Callable[[Tensor], Tensor]:
    """The sum of the weights of the labels' classes; probabilities of classes count alike."""

    def total_weight(targets: Tensor) -> Tensor:
        if targets.is_floating_point():
            return engine.full((), targets.shape[0])
        table = engine.tensor(list(weight))
        return table.index_select(index=targets.reshape(-1), dim=0).sum()

    return total_weight


def _of_values(
    name: str,
    *,
    binary: bool = False,
    distance: bool = False,
    weights: int | None = None,
    postprocess: Mapping[str, Postprocess] | None = None,
    **options: Any,
) -> LossSpec:
    """A loss of torch's functions that takes one output a value, or for each of binary labels."""

    def make() -> LossFunction:
        function, arguments = getattr(F, name), dict(options)
        if "pos_weight" in arguments:
            many = arguments["pos_weight"]
            arguments["pos_weight"] = engine.tensor(
                list(many) if isinstance(many, tuple) else [many]
            )
        return in_shape(partial(function, **arguments))

    kinds = ("labels", "values") if binary else ("values",)
    return LossSpec(kinds, make, binary, weights, postprocess or {}, distance=distance)


def _exp(outputs: Tensor) -> Tensor:
    return outputs.exp()


def _sigmoid(outputs: Tensor) -> Tensor:
    return outputs.sigmoid()


def _scores_of_logits(outputs: Tensor) -> Tensor:
    """Scores whose softmax is 1 - sigmoid(output) and sigmoid(output)."""
    return engine.cat([engine.zeros_like(outputs), outputs], -1)


def _scores_of_probabilities(outputs: Tensor) -> Tensor:
    """Scores whose softmax is 1 - output and output."""
    return engine.cat([1 - outputs, outputs], -1).log()


def _log(values: Tensor) -> Tensor:
    return values.clamp(min=_LEAST).log()


def _logit(values: Tensor) -> Tensor:
    probable = values.clamp(_LEAST, 1 - _LEAST)
    return (probable / (1 - probable)).log()


def _logit_of_scores(scores: Tensor) -> Tensor:
    return scores[..., 1:] - scores[..., :1]


def _probability_of_scores(scores: Tensor) -> Tensor:
    return scores.softmax(-1)[..., 1:]


_LEAST = 1e-7
# The inverse of each: from scores or values to outputs.
OUTPUTS: dict[Postprocess, Postprocess] = {
    _exp: _log,
    _sigmoid: _logit,
    _scores_of_logits: _logit_of_scores,
    _scores_of_probabilities: _probability_of_scores,
}
LOSSES: dict[str, Callable[..., Any]] = {
    "cross_entropy": cross_entropy,
    "mse": mse,
    "l1": l1,
    "smooth_l1": smooth_l1,
    "huber": huber,
    "bce": bce,
    "bce_with_logits": bce_with_logits,
    "nll": nll,
    "kl": kl,
    "poisson_nll": poisson_nll,
}
