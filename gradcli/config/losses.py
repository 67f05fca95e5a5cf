"""Losses by name: typed constructors, each the schema of its keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gradcli.config.fields import Portion

if TYPE_CHECKING:
    from gradcli.engine import Tensor

LossFunction = Callable[["Tensor", "Tensor"], "Tensor"]


@dataclass(frozen=True)
class Loss:
    """A loss and the targets it is for: "labels" (class numbers) or "values".

    Attributes:
        mixed: it takes labels that are probabilities of the classes as well.
    """

    targets: str
    make: Callable[[], LossFunction]
    mixed: bool = False


def cross_entropy(label_smoothing: Portion = 0.0) -> Loss:
    """-log softmax(outputs)[label], the mean over all labels."""

    def make() -> LossFunction:
        from gradcli.engine.nn import functional as F

        def loss(outputs: Tensor, targets: Tensor) -> Tensor:
            # Labels of a sequence are as many single labels; classes stand last. Labels that were
            # mixed are probabilities of them.
            rows = outputs.reshape(-1, outputs.shape[-1])
            shape = rows.shape if targets.dtype.is_floating_point else (-1,)
            return F.cross_entropy(rows, targets.reshape(shape), label_smoothing=label_smoothing)

        return loss

    return Loss("labels", make, mixed=True)


def mse() -> Loss:
    """(output - target)^2, the mean over all values."""

    def make() -> LossFunction:
        from gradcli.engine.nn import functional as F

        return lambda outputs, targets: F.mse_loss(outputs.reshape(targets.shape), targets)

    return Loss("values", make)


LOSSES: dict[str, Callable[..., Any]] = {"cross_entropy": cross_entropy, "mse": mse}
