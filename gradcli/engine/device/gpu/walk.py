"""Walk: shape and strides of tensors of one shape as kernels read them (csrc/gpu/walk.h)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from gradcli.engine.device.gpu.launch import OperandSpec

MOST_DIMS, MOST_TENSORS = 8, 5
_WALK = struct.Struct("I8I40i")


Dim = tuple[int, tuple[int, ...]]  # a size, and the step of each tensor


def merged(operands: Sequence[OperandSpec]) -> list[Dim]:
    """The dimensions of tensors of one shape; those that lie one behind the other are one."""
    dims: list[Dim] = []
    for d, size in enumerate(operands[0].shape):
        if size == 1:
            continue
        steps = tuple(operand.strides[d] for operand in operands)
        if dims and dims[-1][1] == tuple(step * size for step in steps):
            dims[-1] = dims[-1][0] * size, steps
        else:
            dims.append((size, steps))
    return dims


def walk(operands: Sequence[OperandSpec]) -> bytes:
    """A struct Walk."""
    return packed(merged(operands), len(operands))


def packed(dims: Sequence[Dim], tensors: int) -> bytes:
    """A struct Walk of these dimensions."""
    dims = dims or [(1, (0,) * tensors)]
    shape = [size for size, _ in dims]
    rows = [[steps[k] for _, steps in dims] for k in range(tensors)]
    rows += [[]] * (MOST_TENSORS - len(rows))
    every = [step for row in rows for step in (*row, *[0] * (MOST_DIMS - len(row)))]
    return _WALK.pack(len(shape), *shape, *[1] * (MOST_DIMS - len(shape)), *every)
