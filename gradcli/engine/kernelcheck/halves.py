"""Calls in bfloat16, which only tensor cores take as it is: of those that may round to TF32."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import replace

from gradcli.engine.device.gpu.launch import ON_TENSOR_CORES
from gradcli.engine.dtype import bfloat16, float32
from gradcli.engine.kernelcheck.calls import BlockData, CheckedCall


def halved_calls(calls: Iterable[CheckedCall]) -> list[CheckedCall]:
    """The same calls with the upper halves of all numbers."""
    return [
        _halved(call) for call in calls if call.kernel in ON_TENSOR_CORES and call.options == (1.0,)
    ]


def widened_call(call: CheckedCall) -> CheckedCall:
    """A call in bfloat16 as one in float32, with the same numbers."""
    blocks = tuple(
        BlockData(float32, array("I", (half << 16 for half in array("H", b.data))).tobytes())
        for b in call.blocks
    )
    tensors = tuple(replace(operand, dtype=float32) for operand in call.tensors)
    return replace(call, blocks=blocks, tensors=tensors)


def _halved(call: CheckedCall) -> CheckedCall:
    blocks = tuple(
        BlockData(bfloat16, array("H", (word >> 16 for word in array("I", b.data))).tobytes())
        for b in call.blocks
    )
    tensors = tuple(replace(operand, dtype=bfloat16) for operand in call.tensors)
    source = f"{call.source}, in bfloat16"
    return replace(call, blocks=blocks, tensors=tensors, options=(), source=source)
