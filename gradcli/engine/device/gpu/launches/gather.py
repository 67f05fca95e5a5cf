"""Launches of elements picked and put by index, and of indices made ready."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import (
    SUFFIX,
    CallSpec,
    Errors,
    Launch,
    Plan,
    Scratch,
    TensorArg,
    launch,
    launches,
    over,
    single_launch,
    tensors,
    words,
)

FAMILY = "gather"
_ROWS = struct.Struct("4I9i")


@launches("gather")
def gather(call: CallSpec) -> Plan:
    """One pass over what is picked."""
    count, (_, m, inner) = call.numel(1), call.tensors[1].shape
    args = count, call.tensors[0].shape[1], m, inner, Errors()
    return single_launch(FAMILY, call, over(count), *tensors(0, 1, 2), *args)


def claims(suffix: str, indices: int, count: int, places: int, *sizes: int) -> tuple[Launch, ...]:
    """Launches that find, in scratch memory, who of `count` indices puts to each place last."""
    last = Scratch(0)
    nobody = launch(FAMILY, "put_nobody", suffix, over(places), last, places)
    if not count:
        return (nobody,)
    args = *tensors(indices), last, count, *sizes, Errors()
    return nobody, launch(FAMILY, "put_claims", suffix, over(count), *args)


@launches("index_copy")
def index_copy(call: CallSpec) -> Plan:
    """Who puts each row last, then one pass over the result."""
    x, _, source, y = call.tensors
    (outer, n, inner), m = y.shape, call.numel(1)
    if not outer * n * inner:
        return Plan()
    suffix = SUFFIX[x.dtype.name]
    rows = _ROWS.pack(outer, n, inner, m, *x.strides, *source.strides, *y.strides)
    args = *tensors(0, 2), Scratch(0), TensorArg(3), rows
    last = launch(FAMILY, "put_rows", suffix, over(outer * n * inner), *args)
    return Plan((*claims(suffix, 1, m, n, n, max(1, m), 1), last), 4 * n)


@launches("flat_index")
def flat_index(call: CallSpec) -> Plan:
    """One pass; sizes[0]: the size of the dimension."""
    n = call.numel(1)
    args = n, *words(call.size(0)), int(call.numel(0) == 0), Errors()
    return single_launch(FAMILY, call, over(n), *tensors(0, 1, 2), *args)
