"""How far a GPU's results may be from float64 on the CPU, as a share of the largest number there.

A float32 rounding is 6e-8. A family that needs more than the default says why.
"""

from __future__ import annotations

DEFAULT = 2e-6
FAMILIES = {
    # The polynomials of the CPU, each within 2 units in the last place; slopes combine a few.
    "elementwise": 1e-6,
}
KERNELS: dict[str, float] = {
    # Of two samples the gradient is a difference of numbers nearly equal; the CPU's float32 is as
    # far off.
    "batch_norm_backward": 1e-5,
    # A wave of a thousand numbers around 1 that adds up to 0.0004.
    "conv2d_grad_bias": 1e-4,
    # 1 - y^2 where y is nearly 1.
    "tanh_backward": 1e-5,
    # A thousand steps, each of which hands the roundings of the one before on.
    "rnn_forward": 1e-5,
}

# What they draw depends on the element type, so the CPU's float32 is the reference.
DRAWS = {"uniform", "normal", "uniform_at", "dropout_forward", "dropout_backward"}


def bound(kernel: str, families: set[str]) -> float:
    """The bound of a kernel that is launched from modules of these families."""
    known = [FAMILIES.get(family, DEFAULT) for family in families]
    return KERNELS.get(kernel, max(known, default=DEFAULT))
