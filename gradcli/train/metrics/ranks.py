"""Metrics of the order in which scores put the samples; they keep a row of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.dataclass import dataclass
from gradcli.train.metrics.labels import label_rows
from gradcli.train.metrics.metric import Metric, State

if TYPE_CHECKING:
    from gradcli.engine import Tensor


@dataclass(frozen=True)
class RocAuc(Metric):
    """The area under the ROC curve: how often a sample of a class outscores one of another.

    Equal scores count half. For more than two classes it is the mean of each class against the
    rest, by probability. NaN if a class has no sample, or all of them.
    """

    targets = "labels"
    direction = "higher"
    grows = True

    def state(self, outputs: Tensor, targets: Tensor) -> State:
        """A row for each label: how much the second of two classes leads, or probabilities."""
        scores, labels = label_rows(outputs, targets)
        two = scores.shape[1] == 2
        return {"scores": scores[:, 1:] - scores[:, :1] if two else scores.softmax(1), "y": labels}

    def merge(self, states: Sequence[State]) -> State:
        """The rows below each other."""
        return {name: engine.cat([state[name] for state in states]) for name in states[0]}

    def finish(self, state: State) -> float:
        """The mean over the classes that have a score."""
        scores, labels = state["scores"], state["y"]
        columns = scores.shape[1]
        classes = [1] if columns == 1 else range(columns)
        areas = [
            _area(scores[:, column], labels == number) for column, number in enumerate(classes)
        ]
        return sum(areas) / len(areas)


def _area(scores: Tensor, members: Tensor) -> float:
    """The share of pairs, a member and another, in which the member has the larger score."""
    ordered, indices = scores.sort(0)
    inside = members[indices].long().cumsum(0)
    last = engine.ones(1, dtype=engine.bool)
    ends = engine.cat([ordered[1:] != ordered[:-1], last]).nonzero().reshape(-1)
    # The members and the others up to the end of each stretch of equal scores.
    upto = inside[ends]
    beyond = ends + 1 - upto
    inner, outer = int(upto[-1].item()), int(beyond[-1].item())
    if not inner * outer or bool(ordered[-1].isnan().item()):  # a NaN is the largest
        return math.nan
    start = engine.zeros(1, dtype=engine.int64)
    below = engine.cat([start, beyond[:-1]]) + beyond
    gained = upto - engine.cat([start, upto[:-1]])
    return int((gained * below).sum().item()) / (2 * inner * outer)
