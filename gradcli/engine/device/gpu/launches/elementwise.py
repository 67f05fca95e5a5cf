"""Launches of the rows of scalar_ops.h."""

from __future__ import annotations

from gradcli.engine.device.cpu import KERNELS, kernel_facts, kernel_inputs
from gradcli.engine.device.gpu.launch import (
    CallSpec,
    Plan,
    all_tensors,
    launches,
    over,
    single_launch,
)
from gradcli.engine.device.gpu.walk import walk

FAMILY = "elementwise"
_FACTS = {name: kernel_facts(name) for name in KERNELS}
_ROWS = [name for name, (_, formula, _) in _FACTS.items() if formula]
_UNARY = [name for name in _ROWS if kernel_inputs(name) == 1]
_SLOPES = [f"{name}_backward" for name in _UNARY if _FACTS[name][0]]
_BINARY = [name for name in _ROWS if kernel_inputs(name) == 2]
_SLOPES_OF_TWO = [
    f"{name}_backward_{of}" for name in _BINARY for of in "ab" if f"{name}_backward_{of}" in KERNELS
]


@launches(*_UNARY, *_SLOPES)
def flat(call: CallSpec) -> Plan:
    """One pass over contiguous tensors of one shape."""
    n = call.numel()
    args = *all_tensors(call), n, call.option(0), call.option(1)
    return single_launch(FAMILY, call, over(n), *args, row=_row(call.kernel))


@launches(*_BINARY, *_SLOPES_OF_TWO)
def broadcast(call: CallSpec) -> Plan:
    """One pass over tensors of one shape and any strides."""
    n = call.numel()
    args = *all_tensors(call), walk(call.tensors), n, call.option(0), call.option(1)
    return single_launch(FAMILY, call, over(n), *args, row=_row(call.kernel))


def _row(kernel: str) -> str:
    """The row that a kernel is made of."""
    return kernel if kernel in _ROWS else kernel.partition("_backward")[0]
