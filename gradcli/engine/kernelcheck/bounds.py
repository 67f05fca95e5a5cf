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
# 1 - y^2 where y is nearly 1. Other kernels have bounds of their own in csrc/kernels.h.
SLOPES = {"tanh_backward": 1e-5}


def bound(kernel: str, families: set[str]) -> float:
    """The bound of a kernel that is launched from modules of these families."""
    family_bounds = [FAMILIES.get(family, DEFAULT) for family in families]
    own = SLOPES.get(kernel, FACTS[kernel].bound)
    return own or max(family_bounds, default=DEFAULT)
