"""Launches of attention and its gradient."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from gradcli.engine.device.gpu.launch import Draft, OperandSpec, launches, tensors

TILE = 64  # queries or keys
FEW = 16  # queries of a small tile
_ATTENTION = struct.Struct("26If")
_OUTPUTS = struct.Struct("12I")
_BOTH = tensors(3, 3)  # a mask of bytes, a mask of numbers: the kernel reads one


@launches("attention_forward")
def forward(call: Draft) -> None:
    """A block for each tile of queries of each head."""
    q, v = call.tensors[0].shape, call.tensors[2].shape
    heads, queries, width = q[0] * q[1], q[2], v[3]
    kernel, high, wide = "attention_narrow", TILE, 64
    if queries <= FEW:
        kernel, high = "attention_few", FEW
    elif width > wide:
        kernel, wide = "attention_wide", 128
    grid = (heads * -(-queries // high), max(1, -(-width // wide)), 1)
    call.launch(kernel, grid, *tensors(0, 1, 2), *_BOTH, *tensors(4, 5), _packed(call))


@launches("attention_backward")
def backward(call: Draft) -> None:
    """Blocks that own keys, and blocks that own queries; before them each query's dot product."""
    (batches, heads, queries, depth), v = call.tensors[0].shape, call.tensors[2].shape
    keys, width, whole = v[2], v[3], batches * heads
    if not call.has(7):
        return
    rows, packed = whole * queries, _packed(call)
    dots, family = call.scratch(4 * rows), "attention_backward"
    args = *tensors(4, 6), dots, packed, rows
    call.launch("attention_dots", (-(-rows // 8), 1, 1), *args, family=family)
    args = *tensors(0, 1, 2), *_BOTH, *tensors(6, 5), dots, *tensors(7), packed, _outputs(call)
    for kernel, count, columns in (
        ("attention_keys", keys, max(depth, width)),
        ("attention_queries", queries, depth),
    ):
        grid = (whole * -(-count // TILE), -(-columns // TILE), 1)
        call.launch(kernel, grid, *args, family=family)


def _outputs(call: Draft) -> bytes:
    """A struct Outputs (csrc/gpu/sequence/attention_backward.gc)."""
    (batches, heads, queries, depth), v = call.tensors[0].shape, call.tensors[2].shape
    keys, width = v[2], v[3]
    of_q, of_v = heads * depth, heads * width
    if call.size(1):  # side by side: q, k and v of all heads in one row
        row = 2 * of_q + of_v
        firsts = (0, of_q, 2 * of_q)
        steps = [(queries * row, columns, row) for columns in (depth, depth, width)]
    else:
        first_k = batches * queries * of_q
        firsts = (0, first_k, first_k + batches * keys * of_q)
        steps = [
            (queries * of_q, depth, of_q),
            (keys * of_q, depth, of_q),
            (keys * of_v, width, of_v),
        ]
    return _OUTPUTS.pack(*firsts, *[number for each in steps for number in each])


def _steps(x: OperandSpec) -> Sequence[int]:
    """From batch to batch, head to head, row to row; nothing for a mask that is none."""
    return x.strides[:3] if len(x.shape) == 4 else (0, 0, 0)


def _packed(call: Draft) -> bytes:
    """A struct Attention (csrc/gpu/sequence/attention.h)."""
    q, k, v, mask, out = call.tensors[:5]
    grad = call.tensors[6] if len(call.tensors) > 6 else out
    (_, heads, queries, depth), width = q.shape, v.shape[3]
    keys = k.shape[2] if depth + width else 0  # of no columns: nothing to see
    kind = 0 if len(mask.shape) != 4 else 1 if mask.dtype.name == "bool" else 2
    steps = [step for x in (q, k, v, out, grad, mask) for step in _steps(x)]
    column = mask.strides[3] if kind else 0
    causal = call.size(0) != 0
    numbers = (heads, queries, keys, depth, width, *steps, column, kind, causal)
    return _ATTENTION.pack(*numbers, call.option(0))
