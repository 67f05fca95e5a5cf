"""Every metric a config can name: sums over a batch, so that uneven batches weigh rightly."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradcli.engine import Tensor


@dataclass(frozen=True)
class Metric:
    """finish(sum of `total` over all batches / number of targets).

    Attributes:
        total: sum over one batch of (outputs, targets).
        targets: "labels" (class numbers) or "values" (floats); what the metric makes sense for.
        higher: whether more is better.
        finish: the last step, from the mean to the figure.
    """

    total: Callable[[Tensor, Tensor], Tensor]
    targets: str
    higher: bool
    finish: Callable[[float], float] = float


def _hits(outputs: Tensor, targets: Tensor) -> Tensor:
    """How often the largest output stands at the target's class."""
    last = outputs.shape[:-1] == targets.shape
    return (outputs.argmax(dim=-1 if last else 1) == targets).sum()


def _squares(outputs: Tensor, targets: Tensor) -> Tensor:
    difference = outputs.reshape(targets.shape) - targets
    return (difference * difference).sum()


def _distances(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.reshape(targets.shape) - targets).abs().sum()


METRICS: dict[str, Metric] = {
    "accuracy": Metric(_hits, targets="labels", higher=True),
    "mse": Metric(_squares, targets="values", higher=False),
    "rmse": Metric(_squares, targets="values", higher=False, finish=math.sqrt),
    "mae": Metric(_distances, targets="values", higher=False),
}


def better(metric: str, value: float, than: float | None, margin: float = 0.0) -> bool:
    """Whether `value` of `metric` (`val.accuracy`) beats `than` by over `margin`."""
    if not math.isfinite(value):
        return False
    if than is None:
        return True
    return value > than + margin if higher_is_better(metric) else value < than - margin


def higher_is_better(metric: str) -> bool:
    """Accuracy rises, losses and errors fall; a split's name in front changes nothing."""
    name = metric.rpartition(".")[2]
    return name in METRICS and METRICS[name].higher
