"""Launches of the checks of numbers."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import Errors, Plan, Shapes, first, launches, one, over

FAMILY = "finite"


@launches("require_finite", "require_nonzero")
def require(call: Shapes) -> Plan:
    """One pass."""
    n = call.numel()
    return one(FAMILY, call, over(n), *first(1), n, Errors())
