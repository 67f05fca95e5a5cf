"""Launches of running sums and products along (outer, n, inner), and of slopes of products."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import Draft, launches, over, tensors
from gradcli.engine.device.gpu.lines import even_cut

_SCAN = struct.Struct("7I")
_MANY = 1 << 15  # lines keep a GPU busy by themselves


def _cut(call: Draft, product: bool, back: bool) -> tuple[bytes, int, int]:
    """A struct Scan, how many lines there are, and how many chunks."""
    outer, n, inner = call.tensors[0].shape
    lines = outer * inner if n else 0
    chunk = even_cut(n) if lines < _MANY else max(1, n)
    chunks = -(-n // chunk)
    return _SCAN.pack(lines, n, inner, chunk, chunks, product, back), lines, chunks


@launches("cumsum", "cumprod")
def scan(call: Draft) -> None:
    """Totals of chunks, what lies before each, and then the results; sizes[0]: from the end."""
    packed, lines, chunks = _cut(call, call.kernel == "cumprod", call.size(0) != 0)
    several = chunks > 1
    grid, before = over(lines * chunks), call.scratch(8 * lines * chunks * several)
    if several:
        call.launch("scan_totals", grid, *tensors(0), before, packed)
        call.launch("scan_before", over(lines), before, packed)
    call.launch("scan_write", grid, *tensors(0), before, *tensors(1), packed)


@launches("prod_backward")
def prod_backward(call: Draft) -> None:
    """Totals of chunks; then each chunk multiplies up and down."""
    packed, lines, chunks = _cut(call, product=True, back=False)
    grid, totals = over(lines * chunks), call.scratch(8 * lines * chunks)
    call.launch("scan_totals", grid, *tensors(0), totals, packed)
    call.launch("product_of_others", grid, *tensors(0, 1), totals, *tensors(2), packed)


@launches("cumprod_backward")
def cumprod_backward(call: Draft) -> None:
    """The same from the end, with what a chunk makes of any number that it begins with."""
    packed, lines, chunks = _cut(call, product=True, back=True)
    several = chunks > 1
    grid, maps = over(lines * chunks), call.scratch(16 * lines * chunks * several)
    if several:
        call.launch("product_maps", grid, *tensors(0, 2), maps, packed)
        call.launch("product_before", over(lines), maps, packed)
    call.launch("product_backward", grid, *tensors(0, 1, 2), maps, *tensors(3), packed)
