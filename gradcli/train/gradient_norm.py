"""The norm of all gradients as a step has left them, for steps that have no need of it themselves.

What a replayed step leaves lies where it always does, so that a small program of its own reads it
there. The step is the same with it or without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

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
        self._captured: WeakKeyDictionary[Program | DeviceProgram, Captured] = WeakKeyDictionary()

    def __call__(self, programs: Iterable[Program | DeviceProgram] = ()) -> float:
        """The norm; one of `programs` may have left the gradients."""
        grads = clip.gradients(self._parameters)
        if not grads:
            return 0.0
        for program in programs:
            if any(grads[0] is grad for grad in program.grads.values()):
                if program not in self._captured:
                    self._captured[program] = self._capture(
                        partial(norm_of, grads), on_refusal=lambda why: None
                    )
                return float(self._captured[program]().item())
        return float(norm_of(grads).item())


def norm_of(grads: Sequence[Array]) -> Tensor:
    """The norm of these gradients together, a float64."""
    return clip.norm_and_factor(grads, 1.0)[0].reshape(())
