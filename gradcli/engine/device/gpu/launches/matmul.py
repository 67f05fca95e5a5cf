"""Launches of matrix products, and of a row of scalar_ops.h behind one.

Tensor cores take products of bfloat16, and those of float32 whose call says that they may round to
TF32. All others are exact: float32 throughout.
"""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.ends import End, row_behind, store
from gradcli.engine.device.gpu.launch import Draft, launches, tensors
from gradcli.engine.device.gpu.tiles import SKINNY, Bias, cut, cut_of, launch_product

_PRODUCT = struct.Struct("16I")


@launches("matmul")
def matmul(call: Draft) -> None:
    """The product a b + bias."""
    _product(call, store(3), call.option(0))


@launches("matmul_then")
def matmul_then(call: Draft) -> None:
    """The product a b + bias, then a row on all of it: with the bits of two calls."""
    _product(call, row_behind(call, call.size(0)), call.option(2))


def _product(call: Draft, end: End, may_round: float) -> None:
    """A side lies with neighbouring k side by side, or lines do: tensor cores have a way for each.

    Elsewhere the transposed product is done where that has few rows.
    """
    a, b = call.tensors[:2]
    (batch, m, k), n = a.shape, b.shape[2]
    if batch * m * n == 0:
        return
    whole = cut_of(call, may_round, batch, m, n, k)
    transposed = not whole.on_tensor_cores and n <= SKINNY.rows < m
    if transposed:
        whole = cut(batch, n, m, k)
    sides, way = list[int](), ""
    for side, of_lines, of_k in ((b, 2, 1), (a, 1, 2)) if transposed else ((a, 1, 2), (b, 2, 1)):
        sides += [side.strides[of_lines], side.strides[of_k], side.strides[0]]
        way += "l" if side.strides[of_lines] == 1 != side.strides[of_k] else "k"
    size, biased = (n, m) if transposed else (m, n), call.has(2)
    at_once = biased and (whole.on_tensor_cores or not whole.apart)
    steps = (1, n, at_once, 1, 0) if transposed else (n, 1, at_once, 0, 1)
    packed = _PRODUCT.pack(batch, *size, k, *sides, *steps, whole.piece)
    sources, bias = (
        tensors(int(transposed), int(not transposed), 2),
        Bias(2, columns=n if biased else 0),
    )
    way = way if whole.on_tensor_cores else ""
    launch_product(call, "matmul", whole, sources, end, packed, way, bias)
