"""Launches of uniform and normal numbers and dropout."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import Arg, Errors, Plan, Shapes, first, launches, one, over

FAMILY = "random"


def _drawn(call: Shapes, n: int, *args: Arg, typed_by: int) -> Plan:
    tensors = first(len(call.tensors))
    blocks = -(-n // 256) * 64  # of Philox, a thread each
    return one(FAMILY, call, over(blocks), *tensors, n, call.size(0), *args, typed_by=typed_by)


@launches("uniform", "normal")
def drawn(call: Shapes) -> Plan:
    """sizes[0]: which draw. Options: low and high, or mean and deviation."""
    return _drawn(call, call.numel(1), call.option(0), call.option(1), typed_by=1)


@launches("uniform_at")
def uniform_at(call: Shapes) -> Plan:
    """A number by itself is a block of Philox each."""
    count, k = call.numel(2), call.tensors[2].shape[1]
    args = count, max(1, k), call.size(0), Errors()
    return one(FAMILY, call, over(count), *first(3), *args, typed_by=2)


def _scale(call: Shapes) -> float:
    p = call.option(0)
    return 1 / (1 - p) if p < 1 else 0.0


@launches("dropout_forward")
def dropout(call: Shapes) -> Plan:
    """Options: the probability, rounded to 32 bits."""
    below = min(int(call.option(0) * 2**32), 2**32 - 1)
    return _drawn(call, call.numel(), below, _scale(call), typed_by=0)


@launches("dropout_backward")
def dropout_backward(call: Shapes) -> Plan:
    """One pass."""
    n = call.numel()
    return one(FAMILY, call, over(n), *first(3), n, _scale(call))
