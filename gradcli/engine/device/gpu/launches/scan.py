"""Launches of running sums and products along the middle of (outer, n, inner)."""

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
    tensors,
)
from gradcli.engine.device.gpu.lines import even_cut

FAMILY = "scan"
_SCAN = struct.Struct("7I")
_MANY = 1 << 15  # lines keep a GPU busy by themselves


def _cut(call: CallSpec, product: bool, back: bool) -> tuple[bytes, int, int]:
    """A struct Scan, how many lines there are, and how many chunks."""
    outer, n, inner = call.tensors[0].shape
    lines = outer * inner if n else 0
    chunk = even_cut(n) if lines < _MANY else max(1, n)
    chunks = -(-n // chunk)
    return _SCAN.pack(lines, n, inner, chunk, chunks, product, back), lines, chunks


@launches("cumsum", "cumprod")
def scan(call: CallSpec) -> Plan:
    """Totals of chunks, what lies before each, and then the results; sizes[0]: from the end."""
    suffix = SUFFIX[call.tensors[0].dtype.name]
    packed, lines, chunks = _cut(call, call.kernel == "cumprod", call.size(0) != 0)
    if not lines:
        return Plan()
    grid, before = over(lines * chunks), Scratch(0)
    args = TensorArg(0), before, TensorArg(1), packed
    last = launch(FAMILY, "scan_write", suffix, grid, *args)
    if chunks == 1:
        return Plan((last,), 8)
    totals = launch(FAMILY, "scan_totals", suffix, grid, TensorArg(0), before, packed)
    joined = launch(FAMILY, "scan_before", suffix, over(lines), before, packed)
    return Plan((totals, joined, last), 8 * lines * chunks)


@launches("cumprod_backward")
def cumprod_backward(call: CallSpec) -> Plan:
    """The same from the end, with what a chunk makes of any number that it begins with."""
    packed, lines, chunks = _cut(call, product=True, back=True)
    if not lines:
        return Plan()
    grid, maps = over(lines * chunks), Scratch(0)
    args = maps, TensorArg(3), packed
    last = launch(FAMILY, "product_backward", "f32", grid, *tensors(0, 1, 2), *args)
    if chunks == 1:
        return Plan((last,), 16)
    made = launch(FAMILY, "product_maps", "f32", grid, *tensors(0, 2), maps, packed)
    joined = launch(FAMILY, "product_before", "f32", over(lines), maps, packed)
    return Plan((made, joined, last), 16 * lines * chunks)
