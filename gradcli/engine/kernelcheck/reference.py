"""What a call is held against: the CPU in float64, on the numbers that its kernels multiply."""

from __future__ import annotations

import struct
from dataclasses import replace

from gradcli.engine.device.gpu.launch import LaunchList
from gradcli.engine.device.kernels import FACTS
from gradcli.engine.dtype import bfloat16
from gradcli.engine.kernelcheck.calls import BlockData, CheckedCall
from gradcli.engine.kernelcheck.halves import widened_call
from gradcli.engine.kernelcheck.replay import Outcome, converted, on_cpu


def reference(call: CheckedCall, plan: LaunchList) -> Outcome:
    """The outcome of a call that is launched so.

    Tensor cores round both factors to TF32, or take bfloat16, which is not rounded again.
    """
    in_float64 = not FACTS[call.kernel].draws  # what they draw depends on the element type
    if not on_tensor_cores(plan):
        return on_cpu(call, in_float64=in_float64)
    if call.tensors[0].dtype is bfloat16:
        return on_cpu(widened_call(call))
    factors = {call.tensors[i].block for i in (0, 1)}
    rounded = [_rounded(b) if k in factors else b for k, b in enumerate(call.blocks)]
    outcome = on_cpu(replace(call, blocks=tuple(rounded)))
    blocks = list(outcome.blocks)
    for k in factors:  # which the call itself leaves as they are
        blocks[k] = converted(call.blocks[k], outcome.types[k])
    return replace(outcome, blocks=tuple(blocks))


def on_tensor_cores(plan: LaunchList) -> bool:
    """Whether a plan multiplies there."""
    return any(launch.module.family.endswith("_tensor") for launch in plan.launches)


def _rounded(block: BlockData) -> BlockData:
    """To 10 bits behind the first, halves away from 0."""
    bits = struct.unpack(f"{len(block.data) // 4}I", block.data)
    nearest = [b if b & 0x7F800000 == 0x7F800000 else (b + 0x1000 & 0xFFFFE000) for b in bits]
    return BlockData(block.dtype, struct.pack(f"{len(bits)}I", *nearest))
