"""How far a GPU's results may be from float64 on the CPU, as a share of the largest number there.

A float32 rounding is 6e-8. A family that needs more than the default says why.
"""

from __future__ import annotations

from gradcli.engine.device.kernels import FACTS

DEFAULT = 2e-6
FAMILIES = {
    # The polynomials of the CPU, each within 2 units in the last place; slopes combine a few.
    "elementwise": 1e-6,
}
# Other kernels have bounds of their own in csrc/kernels.h.
KERNELS = {
    # 1 - y^2 where y is nearly 1.
    "tanh_backward": 1e-5,
    # Samples of 1,000 filters of 9 numbers: each of 9,000 partial sums is rounded, which is
    # 6e-8 sqrt(9000) of their size, and on a line few results are of that size.
    "conv2d_grad_input": 5.7e-6,
}


def bound(kernel: str, families: set[str]) -> float:
    """The bound of a kernel that is launched from modules of these families."""
    known = [FAMILIES.get(family, DEFAULT) for family in families]
    own = KERNELS.get(kernel, FACTS[kernel].bound)
    return own or max(known, default=DEFAULT)
