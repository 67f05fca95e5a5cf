"""What came of steps that were made in one go."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradcli.dataclass import dataclass
from gradcli.errors import NumericsError

if TYPE_CHECKING:
    from gradcli.errors import GradcliError


@dataclass(frozen=True)
class Figures:
    """Loss and gradient norm of a step, as far as it came."""

    loss: float
    norm: float | None = None


@dataclass(frozen=True)
class Progress:
    """What came of some steps: the figures of each that was begun, and what ended them early.

    Attributes:
        norms: of the gradients, before they are clipped to one; empty where no step needs them.
    """

    losses: list[float]
    norms: list[float]
    done: int
    error: GradcliError | None

    @property
    def refused(self) -> Figures | None:
        """Those of a step that ended because they are not finite; None if it ended otherwise."""
        if not isinstance(self.error, NumericsError) or self.done >= len(self.losses):
            return None
        loss = self.losses[self.done]
        if not math.isfinite(loss):
            return Figures(loss)
        norm = self.norms[self.done] if self.done < len(self.norms) else 0.0
        return None if math.isfinite(norm) else Figures(loss, norm)
