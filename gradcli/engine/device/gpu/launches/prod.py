"""Launches of products along the middle of (outer, n, inner)."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import Draft, launches, tensors
from gradcli.engine.device.gpu.lines import lines, parts


@launches("prod")
def product(call: Draft) -> None:
    """The products of chunks, and what they multiply to."""
    cut = lines(call.tensors[0])
    back, products = parts(cut), call.scratch(8 * cut.results * cut.chunks)
    call.launch("prod_parts", cut.grid, *tensors(0), products, cut.packed)
    call.launch("prod_of_parts", back.grid, products, *tensors(1), back.packed)
