"""Launches of the places of what is not 0."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import (
    SUFFIX,
    Plan,
    Scratch,
    Shapes,
    Tensor,
    launches,
    over,
    step,
)

FAMILY = "nonzero"
_GRID = struct.Struct("9I")
_BLOCK = 2048  # elements of a block


@launches("nonzero")
def nonzero(call: Shapes) -> Plan:
    """Zeros; counts by block; how many are before each block; the places."""
    x, rows, n = call.tensors[0], call.tensors[1].shape[0], call.numel()
    if not rows:
        return Plan()
    suffix, size = SUFFIX[x.dtype.name], call.numel(1)
    clear = step(FAMILY, "nonzero_clear", suffix, over(size), Tensor(1), size)
    if not n:
        return Plan((clear,))
    blocks, counts = -(-n // _BLOCK), Scratch(0)
    shape = _GRID.pack(len(x.shape), *x.shape, *[1] * (8 - len(x.shape)))
    grid = (blocks, 1, 1)
    every = (
        clear,
        step(FAMILY, "nonzero_count", suffix, grid, Tensor(0), counts, n),
        step(FAMILY, "nonzero_before", suffix, (1, 1, 1), counts, blocks),
        step(FAMILY, "nonzero_write", suffix, grid, Tensor(0), counts, Tensor(1), n, rows, shape),
    )
    return Plan(every, 4 * blocks)
