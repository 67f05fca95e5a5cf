"""Launches of the checks of numbers."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import Draft, Errors, launches, over, tensors


@launches("require_finite", "require_nonzero")
def require(call: Draft) -> None:
    """One pass."""
    n = call.numel()
    call.launch(call.kernel, over(n), *tensors(0), n, Errors())
