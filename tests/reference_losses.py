"""References of the losses of pairs, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from grid import Grid, pick
from reference_reduce import reduced


def _pairs(term: Callable[..., float]) -> Callable[..., Grid]:
    """The loss whose terms are term(x, t, **options), and its reduction."""

    def loss(x: Grid, target: Grid, reduction: str = "mean", **options: Any) -> Grid:
        terms = [term(a, b, **options) for a, b in zip(x.flat, target.flat, strict=True)]
        if reduction == "batchmean":
            return Grid((), [math.fsum(terms) / (x.shape[0] if x.shape else 1)])
        return reduced(Grid(x.shape, terms), reduction, len(terms))

    return loss


def _huber(a: float, b: float, delta: float = 1.0) -> float:
    d = abs(a - b)
    return d * d / 2 if d <= delta else delta * (d - delta / 2)


def _smooth_l1(a: float, b: float, beta: float = 1.0) -> float:
    d = abs(a - b)
    return d * d / (2 * beta) if d < beta else d - beta / 2


def _kl(a: float, b: float, log_target: bool = False) -> float:
    return math.exp(b) * (b - a) if log_target else b * (math.log(b) - a)


def _bce(p: float, t: float) -> float:
    return -t * max(math.log(p), -100) - (1 - t) * max(math.log1p(-p), -100)


def _weighed(x: Grid, target: Grid, weight: Grid | None, term: Any, reduction: str) -> Grid:
    def at(i: tuple[int, ...]) -> float:
        return (1.0 if weight is None else pick(weight, i)) * term(x[i], target[i], i)

    terms = Grid.from_function(x.shape, at)
    return reduced(terms, reduction, len(terms.flat))


def _binary(x: Grid, target: Grid, weight: Grid | None = None, reduction: str = "mean") -> Grid:
    return _weighed(x, target, weight, lambda p, t, _: _bce(p, t), reduction)


def _logits(
    x: Grid,
    target: Grid,
    weight: Grid | None = None,
    more: Grid | None = None,
    reduction: str = "mean",
) -> Grid:
    def term(a: float, t: float, i: tuple[int, ...]) -> float:
        p = 1 / (1 + math.exp(-a))
        factor = 1.0 if more is None else pick(more, i)
        return -factor * t * math.log(p) - (1 - t) * math.log1p(-p)

    return _weighed(x, target, weight, term, reduction)


LOSSES: dict[str, Callable[..., Any]] = {
    "l1_loss": _pairs(lambda a, b: abs(a - b)),
    "huber_loss": _pairs(_huber),
    "smooth_l1_loss": _pairs(_smooth_l1),
    "kl_div": _pairs(_kl),
    "binary_cross_entropy": _binary,
    "binary_cross_entropy_with_logits": _logits,
}
