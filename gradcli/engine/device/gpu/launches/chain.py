"""Launches of rows of scalar_ops.h that feed one another.

csrc/cpu/elementwise/chain.h says how they are told. Each chain is a module of its own:
its steps are a part of the text.
"""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import CallSpec, Draft, launches, over, tensors
from gradcli.engine.device.gpu.walk import walk
from gradcli.engine.device.kernels import FACTS, NAMES
from gradcli.engine.dtype import bfloat16

_INPUTS, _TENSORS, _PAIRS = 5, 8, 4


@launches("chain")
def chain(call: Draft) -> None:
    """One pass over the outputs, in float32 whatever lies in memory."""
    like = call.tensors[_INPUTS]
    inputs = [x if len(x.shape) == len(like.shape) else like for x in call.tensors[:_INPUTS]]
    n, options = call.numel(_INPUTS), [call.option(i) for i in range(2 * _PAIRS)]
    args = *tensors(*range(_TENSORS)), walk(inputs), n, *options
    call.launch("chain", over(n), *args, suffix="f32", row=steps_text(call))


def steps_text(call: CallSpec) -> str:
    """The steps as statements: inputs are read first, and outputs written last."""
    lines: list[str] = []
    read: set[int] = set()
    variables: set[int] = set()
    for size in call.sizes[1 : 1 + call.size(0)]:
        *operands, result, pair = (size >> (16 + 4 * i) & 15 for i in range(6))
        kernel = NAMES[size & 0xFFFF]
        slots = operands[: FACTS[kernel].inputs]
        read.update(slot for slot in slots if slot < _INPUTS)
        values = ", ".join(f"s{slot}" for slot in slots)
        prefix = "" if result in variables else "float "
        variables.add(result)
        lines.append(f"{prefix}s{result} = ROW({kernel})({values}, p{pair}, q{pair});")
    shape = call.tensors[_INPUTS].shape
    outputs = [i for i in range(_INPUTS, _TENSORS) if len(call.tensors[i].shape) == len(shape)]
    half = [tensor.dtype is bfloat16 for tensor in call.tensors]
    loads = [f"LOAD{'_HALF' * half[slot]}({slot})" for slot in sorted(read)]
    return " ".join([*loads, *lines, *(f"STORE{'_HALF' * half[slot]}({slot})" for slot in outputs)])
