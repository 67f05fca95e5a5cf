"""Launches of matrix products, and of a row of scalar_ops.h behind one.

Tensor cores take products of bfloat16, and those of float32 whose call says that they may round to
TF32. All others are exact: float32 throughout.
"""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.ends import End, row_behind, written
from gradcli.engine.device.gpu.launch import (
    SUFFIX,
    CallSpec,
    Launch,
    Plan,
    Scratch,
    TensorArg,
    launches,
    tensors,
)
from gradcli.engine.device.gpu.tiles import (
    SKINNY,
    TENSOR_THREADS,
    THREADS,
    Cut,
    cut,
    join,
    scratch_of,
    tensor_cut,
    tensor_end,
    tensor_slice,
)
from gradcli.engine.shape import numel

FAMILY, TENSOR_FAMILY = "matmul", "matmul_tensor"
_PRODUCT = struct.Struct("16I")


@launches("matmul")
def matmul(call: CallSpec) -> Plan:
    """The product a b + bias."""
    return product(call, written(3), call.option(0))


@launches("matmul_then")
def matmul_then(call: CallSpec) -> Plan:
    """The product a b + bias, then a row on all of it: with the bits of two calls."""
    return product(call, row_behind(call, call.size(0)), call.option(2))


def product(call: CallSpec, end: End, may_round: float) -> Plan:
    """The product a b + bias to an end."""
    a, b = call.tensors[:2]
    (batch, m, k), n = a.shape, b.shape[2]
    if batch * m * n == 0:
        return Plan()
    slice_of_k = tensor_slice(call, may_round)
    if slice_of_k:
        whole = tensor_cut(batch, m, n, k, slice_of_k)
        return _joined(call, end, whole, _tensor_tiles(call, end, whole))
    turned = n <= SKINNY.rows < m  # the transposed product is done: it has few rows
    whole = cut(batch, n, m, k) if turned else cut(batch, m, n, k)
    at_once = call.numel(2) > 0 and whole.pieces == 1
    sides: list[int] = []
    for side, of_lines, of_k in ((b, 2, 1), (a, 1, 2)) if turned else ((a, 1, 2), (b, 2, 1)):
        sides += [side.strides[of_lines], side.strides[of_k], side.strides[0]]
    size = (n, m) if turned else (m, n)
    steps = (1, n, at_once, 1, 0) if turned else (n, 1, at_once, 0, 1)
    packed = _PRODUCT.pack(batch, *size, k, *sides, *steps, whole.piece)
    sources = (TensorArg(int(turned)), TensorArg(int(not turned)), TensorArg(2))
    suffix = SUFFIX[a.dtype.name]
    now = end if whole.pieces == 1 else End((Scratch(0),))
    module = now.module(FAMILY, suffix)
    kernel = f"{module.family}_{whole.tile.name}_{suffix}"
    tiles = Launch(module, kernel, whole.blocks, THREADS, (*sources, *now.to, packed))
    return _joined(call, end, whole, tiles)


def _tensor_tiles(call: CallSpec, end: End, whole: Cut) -> Launch:
    """The same on tensor cores. A side lies with neighbouring k side by side, or lines do."""
    a, b = call.tensors[:2]
    (batch, m, k), n = a.shape, b.shape[2]
    sides, way = list[int](), ""
    for side, of_lines, of_k in ((a, 1, 2), (b, 2, 1)):
        sides += [side.strides[of_lines], side.strides[of_k], side.strides[0]]
        way += "l" if side.strides[of_lines] == 1 != side.strides[of_k] else "k"
    packed = _PRODUCT.pack(batch, m, n, k, *sides, n, 1, call.numel(2) > 0, 0, 1, whole.piece)
    suffix, now = SUFFIX[a.dtype.name], tensor_end(end, whole)
    module = now.module(TENSOR_FAMILY, suffix)
    kernel = f"{module.family}_{whole.tile.name}_{way}_{suffix}"
    sources = tensors(0, 1, 2)
    return Launch(module, kernel, whole.blocks, TENSOR_THREADS, (*sources, *now.to, packed))


def _joined(call: CallSpec, end: End, whole: Cut, tiles: Launch) -> Plan:
    if whole.pieces == 1:
        return Plan((tiles,), scratch_of(tiles))
    out = call.tensors[-1]
    columns, suffix = out.shape[2] if call.numel(2) else 0, SUFFIX[out.dtype.name]
    size = numel(out.shape)
    added = join(suffix, whole.pieces, end, size, TensorArg(2), columns=columns)
    return Plan((tiles, added), 4 * whole.pieces * size)
