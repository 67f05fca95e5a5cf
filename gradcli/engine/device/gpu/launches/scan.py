"""Launches of running sums and products along the middle of (outer, n, inner)."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import (
    SUFFIX,
    Plan,
    Scratch,
    Shapes,
    Tensor,
    first,
    launches,
    over,
    step,
)
from gradcli.engine.device.gpu.lines import even_cut

FAMILY = "scan"
_SCAN = struct.Struct("7I")
_MANY = 1 << 15  # lines keep a GPU busy by themselves


def _cut(call: Shapes, product: bool, back: bool) -> tuple[bytes, int, int]:
    """A struct Scan, how many lines there are, and how many chunks."""
    outer, n, inner = call.tensors[0].shape
    lines = outer * inner if n else 0
    chunk = even_cut(n) if lines < _MANY else max(1, n)
    chunks = -(-n // chunk)
    return _SCAN.pack(lines, n, inner, chunk, chunks, product, back), lines, chunks


@launches("cumsum", "cumprod")
def scan(call: Shapes) -> Plan:
    """Totals of chunks, what lies before each, and then the results; sizes[0]: from the end."""
    suffix = SUFFIX[call.tensors[0].dtype.name]
    packed, lines, chunks = _cut(call, call.kernel == "cumprod", call.size(0) != 0)
    if not lines:
        return Plan()
    grid, before = over(lines * chunks), Scratch(0)
    args = Tensor(0), before, Tensor(1), packed
    last = step(FAMILY, "scan_write", suffix, grid, *args)
    if chunks == 1:
        return Plan((last,), 8)
    totals = step(FAMILY, "scan_totals", suffix, grid, Tensor(0), before, packed)
    joined = step(FAMILY, "scan_before", suffix, over(lines), before, packed)
    return Plan((totals, joined, last), 8 * lines * chunks)


@launches("cumprod_backward")
def cumprod_backward(call: Shapes) -> Plan:
    """The same from the end, with what a chunk makes of any number that it begins with."""
    packed, lines, chunks = _cut(call, product=True, back=True)
    if not lines:
        return Plan()
    grid, maps = over(lines * chunks), Scratch(0)
    args = maps, Tensor(3), packed
    last = step(FAMILY, "product_backward", "f32", grid, *first(3), *args)
    if chunks == 1:
        return Plan((last,), 16)
    made = step(FAMILY, "product_maps", "f32", grid, Tensor(0), Tensor(2), maps, packed)
    joined = step(FAMILY, "product_before", "f32", over(lines), maps, packed)
    return Plan((made, joined, last), 16 * lines * chunks)
