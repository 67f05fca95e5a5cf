"""Launches of elements picked and put by index, and of indices made ready."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import (
    Arg,
    Draft,
    Errors,
    launches,
    over,
    tensors,
    words,
)

_ROWS = struct.Struct("4I9i")


@launches("gather")
def gather(call: Draft) -> None:
    """One pass over what is picked."""
    count, (_, m, inner) = call.numel(1), call.tensors[1].shape
    args = count, call.tensors[0].shape[1], m, inner, Errors()
    call.launch("gather", over(count), *tensors(0, 1, 2), *args)


def claim(call: Draft, count: int, indices: int, *sizes: int) -> Arg:
    """Find who of `count` indices, tensor 1, writes each index last."""
    last = call.scratch(4 * indices)
    call.launch("put_nobody", over(indices), last, indices, family="gather")
    args = *tensors(1), last, count, *sizes, Errors()
    call.launch("put_claims", over(count), *args, family="gather")
    return last


@launches("index_copy")
def index_copy(call: Draft) -> None:
    """Who puts each row last, then one pass over the result."""
    x, _, source, y = call.tensors
    (outer, n, inner), m, count = y.shape, call.numel(1), call.numel(3)
    if count:
        last = claim(call, m, n, n, max(1, m), 1)
        rows = _ROWS.pack(outer, n, inner, m, *x.strides, *source.strides, *y.strides)
        call.launch("put_rows", over(count), *tensors(0, 2), last, *tensors(3), rows)


@launches("flat_index")
def flat_index(call: Draft) -> None:
    """One pass; sizes[0]: the size of the dimension."""
    n = call.numel(1)
    args = n, *words(call.size(0)), not call.has(0), Errors()
    call.launch("flat_index", over(n), *tensors(0, 1, 2), *args)
