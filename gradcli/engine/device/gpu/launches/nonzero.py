"""Launches of the places of what is not 0."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import (
    SUFFIX,
    CallSpec,
    Plan,
    Scratch,
    TensorArg,
    launch,
    launches,
    over,
)

FAMILY = "nonzero"
_GRID = struct.Struct("9I")
_BLOCK = 2048  # elements of a block


@launches("nonzero")
def nonzero(call: CallSpec) -> Plan:
    """Zeros; counts by block; how many are before each block; the places."""
    x, rows, n = call.tensors[0], call.tensors[1].shape[0], call.numel()
    if not rows:
        return Plan()
    suffix, size = SUFFIX[x.dtype.name], call.numel(1)
    clear = launch(FAMILY, "nonzero_clear", suffix, over(size), TensorArg(1), size)
    if not n:
        return Plan((clear,))
    blocks, counts = -(-n // _BLOCK), Scratch(0)
    shape = _GRID.pack(len(x.shape), *x.shape, *[1] * (8 - len(x.shape)))
    grid, args = (blocks, 1, 1), (TensorArg(0), counts, TensorArg(1), n, rows, shape)
    every = (
        clear,
        launch(FAMILY, "nonzero_count", suffix, grid, TensorArg(0), counts, n),
        launch(FAMILY, "nonzero_before", suffix, (1, 1, 1), counts, blocks),
        launch(FAMILY, "nonzero_write", suffix, grid, *args),
    )
    return Plan(every, 4 * blocks)
