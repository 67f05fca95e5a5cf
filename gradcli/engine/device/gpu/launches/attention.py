"""Launches of attention and its gradient."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from gradcli.engine.device.gpu.launch import (
    SUFFIX,
    Arg,
    CallSpec,
    KernelModule,
    Launch,
    Operand,
    Plan,
    Scratch,
    TensorArg,
    launches,
    tensors,
)
from gradcli.engine.device.gpu.tiles import THREADS

FORWARD, BACKWARD = "attention", "attention_backward"
TILE = 64  # queries or keys
FEW = 16  # queries of a small tile
_ATTENTION = struct.Struct("26If")
_OUTPUTS = struct.Struct("12I")
_BOTH = tensors(3, 3)  # a mask of bytes, a mask of numbers: the kernel reads one


@launches("attention_forward")
def forward(call: CallSpec) -> Plan:
    """A block for each tile of queries of each head."""
    q, v = call.tensors[0].shape, call.tensors[2].shape
    heads, queries, width = q[0] * q[1], q[2], v[3]
    if heads * queries == 0:
        return Plan()
    kernel, high, wide = "attention_narrow", TILE, 64
    if queries <= FEW:
        kernel, high = "attention_few", FEW
    elif width > wide:
        kernel, wide = "attention_wide", 128
    grid = (heads * -(-queries // high), max(1, -(-width // wide)), 1)
    args = (*tensors(0, 1, 2), *_BOTH, *tensors(4, 5), _packed(call))
    return Plan((_launch(call, FORWARD, kernel, grid, args),))


@launches("attention_backward")
def backward(call: CallSpec) -> Plan:
    """Blocks that own keys, and blocks that own queries; before them each query's dot product."""
    (batches, heads, queries, depth), v = call.tensors[0].shape, call.tensors[2].shape
    keys, width, whole = v[2], v[3], batches * heads
    if call.numel(7) == 0:
        return Plan()
    made: list[Launch] = []
    packed, dots = _packed(call), Scratch(0)
    rows = whole * queries
    if rows:
        args = (*tensors(4, 6), dots, packed, rows)
        made.append(_launch(call, BACKWARD, "attention_dots", (-(-rows // 8), 1, 1), args))
    memory = *tensors(0, 1, 2), *_BOTH, *tensors(6, 5), dots, TensorArg(7)
    shared = (*memory, packed, _outputs(call))
    for kernel, count, columns in (
        ("attention_keys", keys, max(depth, width)),
        ("attention_queries", queries, depth),
    ):
        if count * columns:
            grid = (whole * -(-count // TILE), -(-columns // TILE), 1)
            made.append(_launch(call, BACKWARD, kernel, grid, shared))
    return Plan(tuple(made), max(4, 4 * rows))


def _outputs(call: CallSpec) -> bytes:
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


def _launch(
    call: CallSpec, family: str, kernel: str, grid: tuple[int, int, int], args: tuple[Arg, ...]
) -> Launch:
    suffix = SUFFIX[call.tensors[0].dtype.name]
    return Launch(KernelModule(family, suffix), f"{kernel}_{suffix}", grid, THREADS, args)


def _steps(x: Operand) -> Sequence[int]:
    """From batch to batch, head to head, row to row; nothing for a mask that is none."""
    return x.strides[:3] if len(x.shape) == 4 else (0, 0, 0)


def _packed(call: CallSpec) -> bytes:
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
