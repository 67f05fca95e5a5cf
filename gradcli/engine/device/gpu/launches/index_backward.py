"""Launches of the gradient of picking rows."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import (
    CallSpec,
    Errors,
    Launch,
    Plan,
    Scratch,
    TensorArg,
    launch,
    launches,
    over,
)
from gradcli.engine.device.gpu.lines import even_cut
from gradcli.engine.device.gpu.sorting import sort

FAMILY = "index_backward"
_PICKED = struct.Struct("7I")


@launches("index_select_backward")
def index_select_backward(call: CallSpec) -> Plan:
    """Zeros; indices in order; sums of destinations in a chunk, and of those in several.

    sizes[0]: an index that gets no gradient, or -1.
    """
    (outer, n, inner), m = call.tensors[2].shape, call.numel(1)
    if not outer * n * inner:
        return Plan((_checked(call),) if m else ())
    size = outer * n * inner
    zeros = launch(FAMILY, "index_zero", "f32", over(size), TensorArg(2), size)
    if not m:
        return Plan((zeros,))
    found = sort(TensorArg(1), "i64", 1, m, 0)
    chunk = even_cut(m)
    chunks = -(-m // chunk)
    count, parts = outer * chunks * inner, Scratch(found.end)
    skipped = call.size(0) if 0 <= call.size(0) < n else n
    picked = _PICKED.pack(outer, n, m, inner, chunk, chunks, skipped)
    order = found.keys, found.places
    outs = TensorArg(2), parts, picked, Errors()
    sums = launch(FAMILY, "index_sums", "f32", over(count), TensorArg(0), *order, *outs)
    args = found.keys, parts, TensorArg(2), picked
    joins = launch(FAMILY, "index_joins", "f32", over(count), *args)
    return Plan((zeros, *found.launches, sums, joins), found.end + 16 * count)


def _checked(call: CallSpec) -> Launch:
    """There is nothing to write, but an index may still be bad."""
    m, n = call.numel(1), call.tensors[2].shape[1]
    args = TensorArg(1), m, n, Errors()
    return launch(FAMILY, "index_check", "f32", over(m), *args)
