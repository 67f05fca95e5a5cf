"""Launches of matrix products, and of a row of scalar_ops.h behind one.

Tensor cores take products of bfloat16, and those of float32 whose call says that they may round to
TF32. All others are exact: float32 throughout.
"""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import (
    SUFFIX,
    Launch,
    Module,
    Plan,
    Scratch,
    Shapes,
    Tensor,
    launches,
)
from gradcli.engine.device.gpu.launches.elementwise import row_behind
from gradcli.engine.device.gpu.tiles import (
    SKINNY,
    TENSOR_THREADS,
    THREADS,
    cut,
    join,
    tensor_cut,
    tensor_slice,
)

FAMILY, TENSOR_FAMILY = "matmul", "matmul_tensor"
_PRODUCT = struct.Struct("16I")


@launches("matmul")
def matmul(call: Shapes) -> Plan:
    """The product a b + bias."""
    return product(call, Tensor(3), call.option(0))


@launches("matmul_then")
def matmul_then(call: Shapes) -> Plan:
    """The product a b + bias, then a row on all of it: with the bits of two calls."""
    before = Tensor(4 if call.numel(4) else 5)
    plan = product(call, before, call.option(2))
    row = row_behind(call, call.size(0), Tensor(3), before, Tensor(5))
    return Plan((*plan.launches, *row), plan.scratch)


def product(call: Shapes, to: Tensor, may_round: float) -> Plan:
    """The product a b + bias into one of the tensors."""
    a, b = call.tensors[:2]
    (batch, m, k), n = a.shape, b.shape[2]
    if batch * m * n == 0:
        return Plan()
    if tensor_slice(call, may_round):
        return _tensor_product(call, to, tensor_slice(call, may_round))
    turned = n <= SKINNY.rows < m  # the transposed product is done: it has few rows
    whole = cut(batch, n, m, k) if turned else cut(batch, m, n, k)
    biased = call.numel(2) > 0
    at_once = biased and whole.pieces == 1
    sides: list[int] = []
    for side, of_lines, of_k in ((b, 2, 1), (a, 1, 2)) if turned else ((a, 1, 2), (b, 2, 1)):
        sides += [side.strides[of_lines], side.strides[of_k], side.strides[0]]
    size = (n, m) if turned else (m, n)
    steps = (1, n, at_once, 1, 0) if turned else (n, 1, at_once, 0, 1)
    packed = _PRODUCT.pack(batch, *size, k, *sides, *steps, whole.piece)
    suffix = SUFFIX[a.dtype.name]
    tiles = Launch(
        Module(FAMILY, suffix),
        f"{FAMILY}_{whole.tile.name}_{suffix}",
        whole.blocks,
        THREADS,
        (
            Tensor(int(turned)),
            Tensor(int(not turned)),
            Tensor(2),
            to if whole.pieces == 1 else Scratch(0),
            packed,
        ),
    )
    if whole.pieces == 1:
        return Plan((tiles,))
    everything = batch * m * n
    added = join(suffix, whole.pieces, to, everything, Tensor(2), columns=n if biased else 0)
    return Plan((tiles, added), 4 * whole.pieces * everything)


def _tensor_product(call: Shapes, to: Tensor, slice_of_k: int) -> Plan:
    """The same on tensor cores. A side lies with neighbouring k side by side, or lines do."""
    a, b = call.tensors[:2]
    (batch, m, k), n = a.shape, b.shape[2]
    whole = tensor_cut(batch, m, n, k, slice_of_k)
    biased, sides, way = call.numel(2) > 0, list[int](), ""
    for side, of_lines, of_k in ((a, 1, 2), (b, 2, 1)):
        sides += [side.strides[of_lines], side.strides[of_k], side.strides[0]]
        way += "l" if side.strides[of_lines] == 1 != side.strides[of_k] else "k"
    packed = _PRODUCT.pack(batch, m, n, k, *sides, n, 1, biased, 0, 1, whole.piece)
    suffix = SUFFIX[a.dtype.name]
    tiles = Launch(
        Module(TENSOR_FAMILY, suffix),
        f"{TENSOR_FAMILY}_{whole.tile.name}_{way}_{suffix}",
        whole.blocks,
        TENSOR_THREADS,
        (Tensor(0), Tensor(1), Tensor(2), to, Scratch(0), packed),
    )
    if whole.pieces == 1:
        return Plan((tiles,), 4)  # the pieces' place, which nobody writes
    everything = batch * m * n
    added = join(suffix, whole.pieces, to, everything, Tensor(2), columns=n if biased else 0)
    return Plan((tiles, added), 4 * whole.pieces * everything)
