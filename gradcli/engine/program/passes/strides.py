"""Which tensors of which kernels may have strides; all others are contiguous."""

from __future__ import annotations

from gradcli.engine.device.kernels import FACTS
from gradcli.engine.program.record import View


def reads(kernel: str, number: int, view: View) -> bool:
    """Whether a kernel reads this as its input of this number, and as fast as a copy of it."""
    facts = FACTS[kernel]
    if view.contiguous or facts.any_strides:
        return True
    if number in facts.matrices:
        return any(_next_to_another(view, dim) for dim in (-1, -2))
    return number in facts.rows and _next_to_another(view, -1)


def writes(kernel: str, view: View) -> bool:
    """Whether a kernel can write its output there."""
    return view.contiguous or FACTS[kernel].any_strides


def _next_to_another(view: View, dim: int) -> bool:
    return view.strides[dim] == 1 or view.shape[dim] == 1
