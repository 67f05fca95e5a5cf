"""Launches of layer norm and its gradients."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import (
    CallSpec,
    Launch,
    Plan,
    Scratch,
    launch,
    launches,
    tensors,
)
from gradcli.engine.device.gpu.lines import lines_of
from gradcli.engine.device.gpu.rows import Rows, rows_of

FAMILY = "norm"
_AFFINE = struct.Struct("fII")
_MOST, _MOST_BACK = 1024, 512  # threads of a block
_BLOCKS = 528  # that go over all rows when gradients are added up


@launches("layer_norm")
def layer_norm(call: CallSpec) -> Plan:
    """One launch."""
    rows, n = call.tensors[0].shape
    if not rows:
        return Plan()
    weighted, biased = (int(call.numel(i) > 0) for i in (1, 2))
    affine = _AFFINE.pack(call.option(0), weighted, biased)
    short = rows_of(rows, n, _MOST)
    if short is None:
        cut = lines_of(rows, n, 1, _MOST, cut=False)
        args = *tensors(*range(6)), cut.packed, affine
        line = launch(FAMILY, "layer_norm_lines", "f32", cut.grid, *args, threads=_MOST)
        return Plan((line,))
    sizes, grid = (rows, n, short.members), (short.blocks, 1, 1)
    args = *tensors(*range(6)), *sizes, affine
    row = launch(FAMILY, "layer_norm_rows", "f32", grid, *args, threads=short.threads)
    return Plan((row,))


@launches("layer_norm_backward")
def layer_norm_backward(call: CallSpec) -> Plan:
    """The gradient of x with parts of the others, or both by themselves; then the parts' sum."""
    rows, n = call.tensors[0].shape
    if not n:
        return Plan()
    short = rows_of(rows, n, _MOST_BACK)
    some, parts = _long(call) if short is None else _short(call, short)
    cut = lines_of(n, parts, n, cut=False)
    args = Scratch(0), Scratch(4 * parts * n), *tensors(6, 7), cut.packed
    sums = launch(FAMILY, "layer_norm_parts", "f32", cut.grid, *args)
    return Plan((*some, sums), max(8, 8 * parts * n))


def _short(call: CallSpec, short: Rows) -> tuple[tuple[Launch, ...], int]:
    rows, n = call.tensors[0].shape
    blocks, weighted = min(short.blocks, _BLOCKS), int(call.numel(4) > 0)
    if not rows:
        return (), 0
    parts = Scratch(0), Scratch(4 * blocks * n)
    args = *tensors(*range(6)), *parts, rows, n, short.members, weighted
    kernel, grid = "layer_norm_backward_rows", (blocks, 1, 1)
    some = launch(FAMILY, kernel, "f32", grid, *args, threads=short.threads)
    return (some,), blocks


def _long(call: CallSpec) -> tuple[tuple[Launch, ...], int]:
    rows, n = call.tensors[0].shape
    if not rows:
        return (), 0
    cut, columns = lines_of(rows, n, 1, _MOST, cut=False), lines_of(n, rows, n)
    weighted = int(call.numel(4) > 0)
    parts = Scratch(0), Scratch(4 * columns.chunks * n)
    args = *tensors(*range(6)), cut.packed, weighted
    gradient = launch(FAMILY, "layer_norm_backward_lines", "f32", cut.grid, *args, threads=_MOST)
    args = *tensors(0, 1, 2, 3), *parts, columns.packed
    some = launch(FAMILY, "layer_norm_columns", "f32", columns.grid, *args)
    return (gradient, some), columns.chunks
