"""Launches of uniform and normal numbers and dropout."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import (
    Arg,
    CallSpec,
    Errors,
    Plan,
    all_tensors,
    launches,
    over,
    single_launch,
    tensors,
)

FAMILY = "random"


def _drawn(call: CallSpec, n: int, *args: Arg, typed_by: int) -> Plan:
    blocks = -(-n // 256) * 64  # of Philox, a thread each
    args = *all_tensors(call), n, call.size(0), *args
    return single_launch(FAMILY, call, over(blocks), *args, typed_by=typed_by)


@launches("uniform", "normal")
def drawn(call: CallSpec) -> Plan:
    """sizes[0]: which draw. Options: low and high, or mean and deviation."""
    return _drawn(call, call.numel(1), call.option(0), call.option(1), typed_by=1)


@launches("uniform_at")
def uniform_at(call: CallSpec) -> Plan:
    """A number by itself is a block of Philox each."""
    count, k = call.numel(2), call.tensors[2].shape[1]
    args = count, max(1, k), call.size(0), Errors()
    return single_launch(FAMILY, call, over(count), *tensors(0, 1, 2), *args, typed_by=2)


def _scale(call: CallSpec) -> float:
    p = call.option(0)
    return 1 / (1 - p) if p < 1 else 0.0


@launches("dropout_forward")
def dropout(call: CallSpec) -> Plan:
    """Options: the probability, rounded to 32 bits."""
    below = min(int(call.option(0) * 2**32), 2**32 - 1)
    return _drawn(call, call.numel(), below, _scale(call), typed_by=0)


@launches("dropout_backward")
def dropout_backward(call: CallSpec) -> Plan:
    """One pass."""
    n = call.numel()
    return single_launch(FAMILY, call, over(n), *tensors(0, 1, 2), n, _scale(call))
