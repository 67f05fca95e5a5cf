"""Metrics of values: distances between outputs and targets."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradcli import engine
from gradcli.dataclass import dataclass
from gradcli.train.metrics.metric import Mean, Metric, State

if TYPE_CHECKING:
    from gradcli.engine import Tensor


@dataclass(frozen=True)
class MSE(Mean):
    """(output - target)^2, the mean over all values."""

    targets = "values"
    direction = "lower"

    def state(self, outputs: Tensor, targets: Tensor) -> State:
        """The sum of the squares."""
        difference = _difference(outputs, targets)
        return {"total": (difference * difference).sum(), "count": targets.numel()}


@dataclass(frozen=True)
class RMSE(MSE):
    """The square root of mse."""

    def finish(self, state: State) -> float:
        """The root comes last."""
        return math.sqrt(super().finish(state))


@dataclass(frozen=True)
class MAE(Mean):
    """|output - target|, the mean over all values."""

    targets = "values"
    direction = "lower"

    def state(self, outputs: Tensor, targets: Tensor) -> State:
        """The sum of the distances."""
        return {"total": _difference(outputs, targets).abs().sum(), "count": targets.numel()}


@dataclass(frozen=True)
class MAPE(Mean):
    """|output - target| / |target|, the mean over all values: 0.1 is 10 %.

    A target of 0 counts as 2.2e-16 and makes the figure huge.
    """

    targets = "values"
    direction = "lower"

    def state(self, outputs: Tensor, targets: Tensor) -> State:
        """The sum of the shares."""
        size = targets.abs().clamp(min=sys.float_info.epsilon)
        shares = _difference(outputs, targets).abs() / size
        return {"total": shares.sum(), "count": targets.numel()}


@dataclass(frozen=True)
class MedianError(Metric):
    """The median of |output - target| over the samples; for several values, their mean median."""

    targets = "values"
    direction = "lower"
    grows = True

    def state(self, outputs: Tensor, targets: Tensor) -> State:
        """All distances: a row a sample, a column a value."""
        distances = _difference(outputs, targets).abs()
        return {"distances": distances.reshape(targets.shape[0], -1).float()}

    def merge(self, states: Sequence[State]) -> State:
        """The rows below each other."""
        return {"distances": engine.cat([state["distances"] for state in states])}

    def finish(self, state: State) -> float:
        """The middle of each column, or the mean of the two in the middle."""
        distances: Tensor = state["distances"]
        rows, columns = distances.shape
        ordered = distances.sort(0)[0]
        if bool(ordered[-1].isnan().any().item()):  # a NaN is the largest
            return math.nan
        middle = ordered[[(rows - 1) // 2, rows // 2]].double()
        return float(middle.sum().item()) / (2 * columns)


@dataclass(frozen=True)
class R2(Metric):
    """1 - sum of (target - output)^2 / sum of (target - mean)^2; averaged over values.

    If all targets are equal, it is 1 if all outputs are right, otherwise 0; NaN for one sample.
    """

    targets = "values"
    direction = "higher"

    def state(self, outputs: Tensor, targets: Tensor) -> State:
        """By column: the targets' distances from the first of them, which is near their mean."""
        shape = (targets.shape[0], -1)
        rows = targets.reshape(shape)
        residues = _difference(outputs, targets).reshape(shape)
        distances = rows - rows[:1]
        return {
            "count": targets.shape[0],
            "center": rows[0],
            "drift": distances.sum(0),
            "spread": (distances * distances).sum(0),
            "residue": (residues * residues).sum(0),
        }

    def merge(self, states: Sequence[State]) -> State:
        """All moments about the center of the first (Chan et al. 1983), in 64 bits."""
        first = states[0]
        center = first["center"].double()
        drift, spread, residue = (center * 0 for _ in range(3))
        for state in states:
            shift = state["center"].double() - center
            away = state["drift"].double()
            spread = spread + state["spread"] + 2 * shift * away + state["count"] * shift * shift
            drift = drift + away + state["count"] * shift
            residue = residue + state["residue"]
        counts = sum(state["count"] for state in states)
        moments = {"center": center, "drift": drift, "spread": spread, "residue": residue}
        return {"count": counts, **moments}

    def finish(self, state: State) -> float:
        """The mean over the columns."""
        count = state["count"]
        if count < 2:
            return math.nan
        spread = state["spread"] - state["drift"] * state["drift"] / count
        pairs: Any = zip(state["residue"].tolist(), spread.tolist(), strict=True)
        figures = [_explained(residue, total) for residue, total in pairs]
        return float(sum(figures) / len(figures))


def _explained(residue: float, spread: float) -> float:
    if spread == 0:
        return 1.0 if residue == 0 else 0.0
    return 1 - residue / spread


def _difference(outputs: Tensor, targets: Tensor) -> Tensor:
    return outputs.reshape(targets.shape) - targets
