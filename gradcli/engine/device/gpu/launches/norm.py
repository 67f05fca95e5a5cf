"""Launches of layer norm and its gradients."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import (
    Launch,
    Plan,
    Scratch,
    Shapes,
    Tensor,
    first,
    launches,
    step,
)
from gradcli.engine.device.gpu.lines import lines_of
from gradcli.engine.device.gpu.rows import Rows, rows_of

FAMILY = "norm"
_AFFINE = struct.Struct("fII")
_MOST, _MOST_BACK = 1024, 512  # threads of a block
_BLOCKS = 528  # that go over all rows when gradients are added up


@launches("layer_norm")
def layer_norm(call: Shapes) -> Plan:
    """One launch."""
    rows, n = call.tensors[0].shape
    if not rows:
        return Plan()
    weighted, biased = (int(call.numel(i) > 0) for i in (1, 2))
    affine = _AFFINE.pack(call.option(0), weighted, biased)
    short = rows_of(rows, n, _MOST)
    if short is None:
        cut = lines_of(rows, n, 1, _MOST, cut=False)
        args = cut.packed, affine
        line = step(FAMILY, "layer_norm_lines", "f32", cut.grid, *first(6), *args, threads=_MOST)
        return Plan((line,))
    sizes, grid = (rows, n, short.members), (short.blocks, 1, 1)
    row = step(
        FAMILY,
        "layer_norm_rows",
        "f32",
        grid,
        *first(6),
        *sizes,
        affine,
        threads=short.threads,
    )
    return Plan((row,))


@launches("layer_norm_backward")
def layer_norm_backward(call: Shapes) -> Plan:
    """The gradient of x with parts of the others, or both by themselves; then the parts' sum."""
    rows, n = call.tensors[0].shape
    if not n:
        return Plan()
    short = rows_of(rows, n, _MOST_BACK)
    some, parts = _long(call) if short is None else _short(call, short)
    cut = lines_of(n, parts, n, cut=False)
    sums = step(
        FAMILY,
        "layer_norm_parts",
        "f32",
        cut.grid,
        *(Scratch(0), Scratch(4 * parts * n), Tensor(6), Tensor(7), cut.packed),
    )
    return Plan((*some, sums), max(8, 8 * parts * n))


def _short(call: Shapes, short: Rows) -> tuple[tuple[Launch, ...], int]:
    rows, n = call.tensors[0].shape
    blocks, weighted = min(short.blocks, _BLOCKS), int(call.numel(4) > 0)
    if not rows:
        return (), 0
    parts = Scratch(0), Scratch(4 * blocks * n)
    launch = step(
        FAMILY,
        "layer_norm_backward_rows",
        "f32",
        (blocks, 1, 1),
        *first(6),
        *parts,
        *(rows, n, short.members, weighted),
        threads=short.threads,
    )
    return (launch,), blocks


def _long(call: Shapes) -> tuple[tuple[Launch, ...], int]:
    rows, n = call.tensors[0].shape
    if not rows:
        return (), 0
    cut, columns = lines_of(rows, n, 1, _MOST, cut=False), lines_of(n, rows, n)
    weighted = int(call.numel(4) > 0)
    parts = Scratch(0), Scratch(4 * columns.chunks * n)
    gradient = step(
        FAMILY,
        "layer_norm_backward_lines",
        "f32",
        cut.grid,
        *first(6),
        *(cut.packed, weighted),
        threads=_MOST,
    )
    some = step(
        FAMILY,
        "layer_norm_columns",
        "f32",
        columns.grid,
        *first(4),
        *(*parts, columns.packed),
    )
    return (gradient, some), columns.chunks
