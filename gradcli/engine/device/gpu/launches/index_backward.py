"""Launches of the gradient of picking rows."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import Draft, Errors, TensorArg, launches, over, tensors
from gradcli.engine.device.gpu.lines import even_cut
from gradcli.engine.device.gpu.sorting import sort

_ROWS = struct.Struct("7I")


@launches("index_select_backward")
def index_select_backward(call: Draft) -> None:
    """Zeros; indices in order; sums of destinations in a chunk, and of those in several.

    sizes[0]: an index that gets no gradient, or -1.
    """
    (outer, n, inner), m, size = call.tensors[2].shape, call.numel(1), call.numel(2)
    call.launch("index_zero", over(size), *tensors(2), size)
    if not size:  # there is nothing to write, but an index may still be bad
        call.launch("index_check", over(m), *tensors(1), m, n, Errors())
    elif m:
        keys, indices = sort(call, TensorArg(1), 1, m, suffix="i64")
        chunk = even_cut(m)
        chunks = -(-m // chunk)
        count = outer * chunks * inner
        parts = call.scratch(16 * count)
        ignored = call.size(0) if 0 <= call.size(0) < n else n
        rows = _ROWS.pack(outer, n, m, inner, chunk, chunks, ignored)
        args = keys, indices, *tensors(2), parts, rows, Errors()
        call.launch("index_sums", over(count), *tensors(0), *args)
        call.launch("index_joins", over(count), keys, parts, *tensors(2), rows)
