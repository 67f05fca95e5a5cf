"""Launches of softmax and log-softmax along the middle of (outer, n, inner)."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import THREADS, Launch, Plan, Shapes, first, launches, step
from gradcli.engine.device.gpu.lines import lines, power_of_two

FAMILY = "softmax"
_KEPT = 8  # elements that a thread keeps in registers: EACH_KEPT in softmax.gc
_MOST = 1024  # threads of a block


@launches("softmax_forward", "softmax_backward", "log_softmax_forward", "log_softmax_backward")
def softmax(call: Shapes) -> Plan:
    """Rows that lie in one piece and fit the registers of a block; else lines."""
    _, n, inner = call.tensors[0].shape
    if not call.numel():
        return Plan()
    name = call.kernel.removesuffix("_forward")
    short = inner == 1 and n <= _KEPT * _MOST
    return Plan((_rows(call, name, n) if short else _lines(call, name),))


def _rows(call: Shapes, name: str, n: int) -> Launch:
    members = power_of_two(-(-n // _KEPT), _MOST)
    threads, rows = max(THREADS, members) if members <= 32 else members, call.numel() // n
    grid = (-(-rows * members // threads), 1, 1)
    tensors = first(len(call.tensors))
    args = rows, n, members
    return step(FAMILY, f"{name}_rows", "f32", grid, *tensors, *args, threads=threads)


def _lines(call: Shapes, name: str) -> Launch:
    cut = lines(call.tensors[0], threads=_wide(call), cut=False)
    tensors, threads = first(len(call.tensors)), cut.threads
    return step(FAMILY, f"{name}_lines", "f32", cut.grid, *tensors, cut.packed, threads=threads)


def _wide(call: Shapes) -> int:
    """Threads of a block: more for long lines."""
    return _MOST if call.tensors[0].shape[1] > _KEPT * _MOST else THREADS
