"""Launches of nonzero: the indices of elements that are not 0."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import Draft, launches, over, tensors

_GRID = struct.Struct("9I")
_BLOCK = 2048  # elements of a block


@launches("nonzero")
def nonzero(call: Draft) -> None:
    """Zeros; counts by block; how many are before each block; the indices."""
    x, rows, n, size = call.tensors[0], call.tensors[1].shape[0], call.numel(), call.numel(1)
    if not rows:
        return
    call.launch("nonzero_clear", over(size), *tensors(1), size)
    blocks = -(-n // _BLOCK)
    if blocks:
        counts, grid = call.scratch(4 * blocks), (blocks, 1, 1)
        shape = _GRID.pack(len(x.shape), *x.shape, *[1] * (8 - len(x.shape)))
        call.launch("nonzero_count", grid, *tensors(0), counts, n)
        call.launch("nonzero_before", (1, 1, 1), counts, blocks)
        call.launch("nonzero_write", grid, *tensors(0), counts, *tensors(1), n, rows, shape)
