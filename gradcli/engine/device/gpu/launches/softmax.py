"""Launches of softmax and log-softmax along the middle of (outer, n, inner)."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import THREADS, CallSpec, Plan, all_tensors, launch, launches
from gradcli.engine.device.gpu.lines import lines
from gradcli.engine.device.gpu.rows import KEPT, rows_of

FAMILY = "softmax"
_MOST = 1024  # threads of a block


@launches("softmax_forward", "softmax_backward", "log_softmax_forward", "log_softmax_backward")
def softmax(call: CallSpec) -> Plan:
    """Rows that lie in one piece and fit the registers of a block; else lines."""
    outer, n, inner = call.tensors[0].shape
    if not call.numel():
        return Plan()
    name, args = call.kernel.removesuffix("_forward"), all_tensors(call)
    short = rows_of(outer, n, _MOST) if inner == 1 else None
    if short is None:
        threads = _MOST if n > KEPT * _MOST else THREADS
        cut = lines(call.tensors[0], threads=threads, cut=False)
        kernel = f"{name}_lines"
        return Plan((launch(FAMILY, kernel, "f32", cut.grid, *args, cut.packed, threads=threads),))
    sizes, grid = (outer, n, short.members), (short.blocks, 1, 1)
    kernel = f"{name}_rows"
    return Plan((launch(FAMILY, kernel, "f32", grid, *args, *sizes, threads=short.threads),))
