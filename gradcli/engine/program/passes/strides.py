"""Which tensors of which kernels may have strides; all others are contiguous."""

from __future__ import annotations

from gradcli.engine.program.record import View
from gradcli.engine.program.rows import STRIDED

# Inputs by number. Elementwise kernels of two inputs and more, and `copy`, take any strides.
_MATRICES = {"matmul": (0, 1), "matmul_then": (0, 1)}  # read fast along rows or columns
_ROWS = {  # the last dimension has stride 1
    "attention_forward": (0, 1, 2),
    "attention_backward": (0, 1, 2, 4, 6),
}
_ANY_OUTPUT = STRIDED | {"copy", "fill"}


def reads(kernel: str, number: int, view: View) -> bool:
    """Whether a kernel reads this as its input of this number, and as fast as a copy of it."""
    if view.contiguous or kernel == "copy" or kernel in STRIDED:
        return True
    if number in _MATRICES.get(kernel, ()):
        return any(_next_to_another(view, dim) for dim in (-1, -2))
    return number in _ROWS.get(kernel, ()) and _next_to_another(view, -1)


def writes(kernel: str, view: View) -> bool:
    """Whether a kernel can write its output there."""
    return view.contiguous or kernel in _ANY_OUTPUT


def _next_to_another(view: View, dim: int) -> bool:
    return view.strides[dim] == 1 or view.shape[dim] == 1
