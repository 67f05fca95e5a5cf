"""Launches of the rows of scalar_ops.h."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import Draft, launches, over
from gradcli.engine.device.gpu.walk import walk
from gradcli.engine.device.kernels import FACTS


@launches(*(facts.name for facts in FACTS.values() if facts.elementwise))
def elementwise(call: Draft) -> None:
    """One pass over tensors of one shape: contiguous, unless a row takes any strides."""
    facts, n = FACTS[call.kernel], call.numel()
    steps = (walk(call.tensors),) if facts.any_strides else ()
    args = *call.all_tensors(), *steps, n, call.option(0), call.option(1)
    call.launch(call.kernel, over(n), *args, row=facts.op)
