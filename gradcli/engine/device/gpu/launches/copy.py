"""Launches of copy and fill."""

from __future__ import annotations

import math
import struct

from gradcli.engine.device.gpu.launch import Draft, launches, over, tensors, words
from gradcli.engine.device.gpu.walk import Dim, merged, packed, walk

_TURN = struct.Struct("4I2i")
_TILE = 32  # rows and columns of a tile
_NARROW = 8  # columns or rows too few for tiles


@launches("copy")
def copy(call: Draft) -> None:
    """One pass; the kernel is named after what it reads, and whether it writes bool."""
    source, target = call.tensors
    dims = merged(call.tensors)
    turn = _neighbours(dims) if source.dtype == target.dtype else None
    if turn is not None:
        _transpose(call, dims, *turn)
        return
    kind, n = "truth" if target.dtype.name == "bool" else "copy", call.numel()
    args = *tensors(0, 1), packed(dims, 2), n
    call.launch(f"{kind}_of_{call.suffix()}", over(n), *args, suffix=call.suffix(1))


def _neighbours(dims: list[Dim]) -> tuple[int, int] | None:
    """Along which dimension the result has its neighbours, and the source, where that pays."""
    columns, rows = (
        next((d for d, (_, steps) in enumerate(dims) if steps[tensor] == 1), None)
        for tensor in (1, 0)
    )
    if columns is None or rows is None or columns == rows:
        return None
    return (columns, rows) if min(dims[columns][0], dims[rows][0]) >= _NARROW else None


def _transpose(call: Draft, dims: list[Dim], columns: int, rows: int) -> None:
    """Tiles of the two dimensions in which source and result have their neighbours."""
    (width, (source_step, _)), (height, (_, result_step)) = dims[columns], dims[rows]
    tiles = -(-width // _TILE), -(-height // _TILE)
    rest = [dim for d, dim in enumerate(dims) if d not in (columns, rows)]
    turn = _TURN.pack(width, height, *tiles, source_step, result_step)
    blocks = math.prod(tiles) * math.prod(size for size, _ in rest)
    call.launch("copy_turned", (blocks, 1, 1), *tensors(0, 1), packed(rest, 2), turn)


@launches("fill")
def fill(call: Draft) -> None:
    """One pass that writes a float, or the two halves of a whole number."""
    n = call.numel()
    real = call.tensors[0].dtype.is_floating_point
    value = (call.option(0),) if real else words(call.size(0))
    call.launch("fill", over(n), *tensors(0), walk(call.tensors), n, *value)
