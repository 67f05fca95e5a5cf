"""Launches of the rows of scalar_ops.h."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import (
    CallSpec,
    Plan,
    all_tensors,
    launches,
    over,
    single_launch,
)
from gradcli.engine.device.gpu.walk import walk
from gradcli.engine.device.kernels import FACTS

FAMILY = "elementwise"
_ROWS = [facts for facts in FACTS.values() if facts.elementwise]


@launches(*(facts.name for facts in _ROWS if not facts.any_strides))
def flat(call: CallSpec) -> Plan:
    """One pass over contiguous tensors of one shape."""
    n = call.numel()
    args = *all_tensors(call), n, call.option(0), call.option(1)
    return single_launch(FAMILY, call, over(n), *args, row=FACTS[call.kernel].op)


@launches(*(facts.name for facts in _ROWS if facts.any_strides))
def broadcast(call: CallSpec) -> Plan:
    """One pass over tensors of one shape and any strides."""
    n = call.numel()
    args = *all_tensors(call), walk(call.tensors), n, call.option(0), call.option(1)
    return single_launch(FAMILY, call, over(n), *args, row=FACTS[call.kernel].op)
