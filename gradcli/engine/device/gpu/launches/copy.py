"""Launches of copy and fill."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import (
    SUFFIX,
    Plan,
    Shapes,
    Tensor,
    launches,
    one,
    over,
    words,
)
from gradcli.engine.device.gpu.walk import walk

FAMILY = "copy"


@launches("copy")
def copy(call: Shapes) -> Plan:
    """One pass; the kernel is named after what it reads, and whether it writes bool."""
    source, target = call.tensors
    kind = "truth" if target.dtype.name == "bool" else "copy"
    n = call.numel()
    return one(
        FAMILY,
        call,
        over(n),
        Tensor(0),
        Tensor(1),
        walk(call.tensors),
        n,
        kernel=f"{kind}_of_{SUFFIX[source.dtype.name]}",
        typed_by=1,
    )


@launches("fill")
def fill(call: Shapes) -> Plan:
    """One pass that writes a float, or the two halves of a whole number."""
    n = call.numel()
    real = call.tensors[0].dtype.name == "float32"
    value = (call.option(0),) if real else words(call.size(0))
    return one(FAMILY, call, over(n), Tensor(0), walk(call.tensors), n, *value)
