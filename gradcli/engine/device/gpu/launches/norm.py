"""Launches of layer norm and its gradients."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from gradcli.engine.device.gpu.launch import Arg, Draft, launches, tensors
from gradcli.engine.device.gpu.lines import lines_of
from gradcli.engine.device.gpu.rows import rows_of

_AFFINE = struct.Struct("fII")
_MOST, _MOST_BACK = 1024, 512  # threads of a block
_BLOCKS = 528  # that go over all rows when gradients are added up


@launches("layer_norm")
def layer_norm(call: Draft) -> None:
    """One launch."""
    rows, n = call.tensors[0].shape
    affine = _AFFINE.pack(call.option(0), call.has(1), call.has(2))
    short = rows_of(rows, n, _MOST)
    if short is None:
        cut = lines_of(rows, n, 1, _MOST, cut=False)
        args = *tensors(*range(6)), cut.packed, affine
        call.launch("layer_norm_lines", cut.grid, *args, threads=_MOST)
    else:
        args = *tensors(*range(6)), rows, n, short.members, affine
        call.launch("layer_norm_rows", (short.blocks, 1, 1), *args, threads=short.threads)


@launches("layer_norm_backward")
def layer_norm_backward(call: Draft) -> None:
    """The gradient of x with parts of the others, or both by themselves; then the parts' sum."""
    rows, n = call.tensors[0].shape
    if not n:
        return
    short, columns = rows_of(rows, n, _MOST_BACK), lines_of(n, rows, n)
    blocks = columns.chunks if short is None else min(short.blocks, _BLOCKS)
    parts = call.pair(blocks * n)
    if short is None:
        backward_lines(call, tensors(*range(6)), rows, n, call.has(4))
        args = *tensors(0, 1, 2, 3), *parts, columns.packed
        call.launch("layer_norm_columns", columns.grid, *args)
    else:
        args = *tensors(*range(6)), *parts, rows, n, short.members, call.has(4)
        call.launch("layer_norm_backward_rows", (blocks, 1, 1), *args, threads=short.threads)
    cut = lines_of(n, blocks, n, cut=False)
    call.launch("layer_norm_parts", cut.grid, *parts, *tensors(6, 7), cut.packed)


def backward_lines(call: Draft, args: Iterable[Arg], rows: int, n: int, weighted: bool) -> None:
    """The gradient of x, however long the rows are."""
    cut, kernel = lines_of(rows, n, 1, _MOST, cut=False), "layer_norm_backward_lines"
    call.launch(kernel, cut.grid, *args, cut.packed, weighted, threads=_MOST, family="norm")
