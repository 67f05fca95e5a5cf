"""The norm of all gradients after a step that does not compute it itself.

A replayed step always leaves its gradients at the same addresses, so a small program reads them
there. The step is the same with or without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from gradcli import engine
from gradcli.engine.optim import clip

if TYPE_CHECKING:
    from gradcli.engine import Tensor
    from gradcli.engine.array import Array
    from gradcli.engine.program.capture import Captured
    from gradcli.engine.program.on_device import DeviceProgram
    from gradcli.engine.program.replay import Program


class GradientNorm:
    """The norm of the gradients of some parameters, as they are now."""

    def __init__(
        self, parameters: Iterable[Tensor], capture: Callable[..., Captured] = engine.capture
    ) -> None:
        self._parameters = list(parameters)
        self._capture = capture
        self._captured: list[
            tuple[Array, Captured]
        ] = []  # each with the first gradient that it reads

    def __call__(self, programs: Callable[[], Sequence[Program | DeviceProgram]] = list) -> float:
        """The norm; one of `programs`, those of the step, may have left the gradients."""
        grads = clip.gradients(self._parameters)
        if not grads:
            return 0.0
        for first, captured in self._captured:
            if first is grads[0]:
                return float(captured().item())
        outputs = [grad for program in programs() for grad in program.grads.values()]
        if not _among(grads[0], outputs):
            return float(norm_of(grads).item())
        captured = self._capture(partial(norm_of, grads), on_fallback=lambda reason: None)
        self._captured = [pair for pair in self._captured if _among(pair[0], outputs)]
        self._captured.append((grads[0], captured))
        return float(captured().item())


def _among(grad: Array, candidates: Iterable[Array | None]) -> bool:
    return any(grad is candidate for candidate in candidates)


def norm_of(grads: Sequence[Array]) -> Tensor:
    """The norm of these gradients together, a float64."""
    return clip.norm_and_factor(grads, 1.0)[0].reshape(())
