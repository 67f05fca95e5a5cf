"""Launches of the checks of numbers."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import (
    CallSpec,
    Errors,
    Plan,
    launches,
    over,
    single_launch,
    tensors,
)

FAMILY = "finite"


@launches("require_finite", "require_nonzero")
def require(call: CallSpec) -> Plan:
    """One pass."""
    n = call.numel()
    return single_launch(FAMILY, call, over(n), *tensors(0), n, Errors())
