"""The results of a stretch of steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradcli.dataclass import dataclass
from gradcli.errors import NumericsError

if TYPE_CHECKING:
    from gradcli.errors import GradcliError


@dataclass(frozen=True)
class Figures:
    """Loss and, if the step got that far, gradient norm of a step."""

    loss: float
    norm: float | None = None


@dataclass(frozen=True)
class StepResults:
    """The figures of a stretch of steps, and the error that ended it early.

    Attributes:
        losses: of each step that began.
        norms: of the gradients before clipping; empty if no step needs them.
        count: how many steps were completed.
    """

    losses: list[float]
    norms: list[float]
    count: int
    error: GradcliError | None

    @property
    def nonfinite(self) -> Figures | None:
        """The figures of the step that ended because they are not finite, if one did."""
        if not isinstance(self.error, NumericsError) or self.count >= len(self.losses):
            return None
        loss = self.losses[self.count]
        if not math.isfinite(loss):
            return Figures(loss)
        norm = self.norms[self.count] if self.count < len(self.norms) else 0.0
        return None if math.isfinite(norm) else Figures(loss, norm)
