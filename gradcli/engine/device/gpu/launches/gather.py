"""Launches of elements picked and put by index, and of indices made ready."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import (
    SUFFIX,
    Errors,
    Launch,
    Plan,
    Scratch,
    Shapes,
    Tensor,
    first,
    launches,
    one,
    over,
    step,
    words,
)

FAMILY = "gather"
_ROWS = struct.Struct("4I9i")


@launches("gather")
def gather(call: Shapes) -> Plan:
    """One pass over what is picked."""
    count, (_, m, inner) = call.numel(1), call.tensors[1].shape
    args = count, call.tensors[0].shape[1], m, inner, Errors()
    return one(FAMILY, call, over(count), *first(3), *args)


def claims(suffix: str, indices: int, count: int, places: int, *sizes: int) -> tuple[Launch, ...]:
    """Launches that find, in scratch memory, who of `count` indices puts to each place last."""
    last = Scratch(0)
    nobody = step(FAMILY, "put_nobody", suffix, over(places), last, places)
    if not count:
        return (nobody,)
    tensors, behind = (Tensor(indices), last), Errors()
    grid = over(count)
    return nobody, step(FAMILY, "put_claims", suffix, grid, *tensors, count, *sizes, behind)


@launches("index_copy")
def index_copy(call: Shapes) -> Plan:
    """Who puts each row last, then one pass over the result."""
    x, _, source, y = call.tensors
    (outer, n, inner), m = y.shape, call.numel(1)
    if not outer * n * inner:
        return Plan()
    suffix = SUFFIX[x.dtype.name]
    rows = _ROWS.pack(outer, n, inner, m, *x.strides, *source.strides, *y.strides)
    args = Tensor(0), Tensor(2), Scratch(0), Tensor(3), rows
    last = step(FAMILY, "put_rows", suffix, over(outer * n * inner), *args)
    return Plan((*claims(suffix, 1, m, n, n, max(1, m), 1), last), 4 * n)


@launches("flat_index")
def flat_index(call: Shapes) -> Plan:
    """One pass; sizes[0]: the size of the dimension."""
    n = call.numel(1)
    args = n, *words(call.size(0)), int(call.numel(0) == 0), Errors()
    return one(FAMILY, call, over(n), *first(3), *args)
