"""Launches of softmax and log-softmax along the middle of (outer, n, inner)."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import THREADS, Draft, launches
from gradcli.engine.device.gpu.lines import lines
from gradcli.engine.device.gpu.rows import PER_THREAD, rows_of

_MOST = 1024  # threads of a block


@launches("softmax_forward", "softmax_backward", "log_softmax_forward", "log_softmax_backward")
def softmax(call: Draft) -> None:
    """Rows that lie in one piece and fit the registers of a block; else lines."""
    outer, n, inner = call.tensors[0].shape
    if not call.has(0):
        return
    name, args = call.kernel.removesuffix("_forward"), call.all_tensors()
    short = rows_of(outer, n, _MOST) if inner == 1 else None
    if short is None:
        threads = _MOST if n > PER_THREAD * _MOST else THREADS
        cut = lines(call.tensors[0], threads=threads, cut=False)
        call.launch(f"{name}_lines", cut.grid, *args, cut.packed, threads=threads)
    else:
        sizes, grid = (outer, n, short.members), (short.blocks, 1, 1)
        call.launch(f"{name}_rows", grid, *args, *sizes, threads=short.threads)
