"""Walk: shape and strides of tensors of one shape as kernels read them (csrc/gpu/walk.h)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from gradcli.engine.device.gpu.launch import Operand

MOST_DIMS, MOST_TENSORS = 8, 5
_WALK = struct.Struct("I8I40i")


def walk(operands: Sequence[Operand]) -> bytes:
    """A struct Walk; dimensions that lie one behind the other in all tensors are merged."""
    shape: list[int] = []
    strides: list[list[int]] = []  # of a dimension, one a tensor
    for d, size in enumerate(operands[0].shape):
        if size == 1:
            continue
        steps = [operand.strides[d] for operand in operands]
        if shape and strides[-1] == [step * size for step in steps]:
            shape[-1] *= size
            strides[-1] = steps
        else:
            shape.append(size)
            strides.append(steps)
    if not shape:
        shape, strides = [1], [[0] * len(operands)]
    rows = [[dim[k] for dim in strides] for k in range(len(operands))]
    rows += [[]] * (MOST_TENSORS - len(rows))
    padded = [step for row in rows for step in (*row, *[0] * (MOST_DIMS - len(row)))]
    return _WALK.pack(len(shape), *shape, *[1] * (MOST_DIMS - len(shape)), *padded)
