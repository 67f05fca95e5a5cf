"""Metrics of labels that are sums over samples: hits, and how good probabilities are."""

from __future__ import annotations

import math
import sys
from functools import cached_property
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.dataclass import dataclass
from gradcli.engine.kind import Count
from gradcli.engine.nn import functional as F
from gradcli.train.metrics.metric import Mean, Metric, State, Task
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.engine import Tensor

LEAST = sys.float_info.epsilon  # of a probability whose logarithm is taken


@dataclass(frozen=True)
class Accuracy(Mean):
    """The share of labels whose class has the largest score; of equal scores the first counts."""

    targets = "labels"
    direction = "higher"

    def state(self, outputs: Tensor, targets: Tensor) -> State:
        """How often the largest output stands at the label's class."""
        last = outputs.shape[:-1] == targets.shape
        hits = (outputs.argmax(dim=-1 if last else 1) == targets).sum()
        return {"total": hits, "count": targets.numel()}


@dataclass(frozen=True)
class TopK(Mean):
    """The share of labels whose class is among the `k` with the largest scores.

    Of equal scores, that of the later class ranks first.
    """

    targets = "labels"
    direction = "higher"

    k: Count = 5

    def state(self, outputs: Tensor, targets: Tensor) -> State:
        """How many labels have more than classes - k of them behind or at them; NaN is no hit."""
        scores, labels = label_rows(outputs, targets)
        column, classes = labels.reshape(-1, 1), scores.shape[1]
        own = scores.gather(1, column)
        equal = (scores == own) & (engine.arange(classes) <= column)
        hits = ((scores < own) | equal).sum(1) > classes - self.k
        return {"total": hits.sum(), "count": labels.numel()}

    def misfit(self, task: Task) -> tuple[str, str] | None:
        """With as many classes as k, every prediction is right."""
        if super().misfit(task) or self.k < task.classes:
            return super().misfit(task)
        cure = f"a k below {task.classes}" if task.classes > 2 else "accuracy"
        return (
            f"with k {self.k} is always 1, this data has {quantity(task.classes, 'class')}",
            f"use {cure}",
        )


@dataclass(frozen=True)
class LogLoss(Mean):
    """-log(probability of the label), the mean over all labels, without weights of the loss.

    Probabilities below 2.2e-16 count as 2.2e-16.
    """

    targets = "labels"
    direction = "lower"

    def state(self, outputs: Tensor, targets: Tensor) -> State:
        """The sum of the logarithms."""
        losses = F.cross_entropy(*label_rows(outputs, targets), reduction="none")
        return {"total": losses.clamp(max=-math.log(LEAST)).sum(), "count": targets.numel()}


@dataclass(frozen=True)
class Brier(Mean):
    """The squared distance between the classes' probabilities and 1 at the label, 0 elsewhere.

    The mean over all labels; for two classes half of it, (probability of the second - label)^2.
    """

    targets = "labels"
    direction = "lower"

    def state(self, outputs: Tensor, targets: Tensor) -> State:
        """The sum of the squares."""
        scores, labels = label_rows(outputs, targets)
        probabilities = scores.softmax(1)
        distances = probabilities - F.one_hot(labels, scores.shape[1]).to(probabilities.dtype)
        share = 0.5 if scores.shape[1] == 2 else 1.0
        return {"total": (distances * distances).sum() * share, "count": labels.numel()}


@dataclass(frozen=True)
class Perplexity(Mean):
    """exp of the mean of -log(probability of the next token); for texts."""

    targets = "labels"
    direction = "lower"

    def state(self, outputs: Tensor, targets: Tensor) -> State:
        """The sum of the logarithms."""
        total = F.cross_entropy(*label_rows(outputs, targets), reduction="sum")
        return {"total": total, "count": targets.numel()}

    def finish(self, state: State) -> float:
        """Infinite where no float holds it."""
        try:
            return math.exp(super().finish(state))
        except OverflowError:
            return math.inf

    def misfit(self, task: Task) -> tuple[str, str] | None:
        """Tokens of a text only."""
        if task.text:
            return None
        cure = "log_loss" if task.targets == "labels" else "mae"
        return "is for texts, this data has no next tokens as targets", f"use {cure}"


@dataclass(frozen=True)
class BitsPerCharacter(Perplexity):
    """The mean of -log2(probability of the next token): a character, or a byte of `unit: bytes`."""

    def finish(self, state: State) -> float:
        """Bits instead of nats."""
        return Mean.finish(self, state) / math.log(2)


@dataclass(frozen=True)
class BitsPerByte(BitsPerCharacter):
    """The sum of -log2(probability of the next token), divided by these tokens' bytes in UTF-8.

    It compares models of characters, bytes and larger tokens.
    """

    def for_task(self, task: Task) -> Metric:
        """With the length of each token."""
        return _BitsPerByte(task.token_bytes)

    def misfit(self, task: Task) -> tuple[str, str] | None:
        """Tokens whose text is known."""
        if super().misfit(task) or task.token_bytes:
            return super().misfit(task)
        return "needs the text of each token, which this data does not have", "use perplexity"


@dataclass(frozen=True)
class _BitsPerByte(BitsPerByte):
    lengths: tuple[int, ...] = ()

    @cached_property
    def _table(self) -> Tensor:
        return engine.tensor(self.lengths, dtype=engine.int64)

    def state(self, outputs: Tensor, targets: Tensor) -> State:
        """The sum of the logarithms, and of the bytes."""
        lengths = self._table.to(targets.device)[targets.flatten()]
        return {"total": super().state(outputs, targets)["total"], "count": lengths.sum()}


def label_rows(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Scores as (N, C) and labels as (N,): those of a sequence are as many single ones."""
    if outputs.shape[:-1] != targets.shape:
        outputs = outputs.movedim(1, -1)
    return outputs.reshape(-1, outputs.shape[-1]).float(), targets.reshape(-1)
