"""Launches of rows picked by index, where, ranges and triangles."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import (
    CallSpec,
    Errors,
    Plan,
    launches,
    over,
    single_launch,
    tensors,
    words,
)
from gradcli.engine.device.gpu.walk import walk

FAMILY = "index"
_RANGE = struct.Struct("4f")


@launches("index_select", "embedding")
def index_select(call: CallSpec) -> Plan:
    """One pass over what is picked."""
    (outer, n, inner), m = call.tensors[0].shape, call.numel(1)
    count = outer * m * max(1, inner)
    args = count, n, m, inner, Errors()
    return single_launch(FAMILY, call, over(count), *tensors(0, 1, 2), *args, kernel="index_select")


@launches("where")
def where(call: CallSpec) -> Plan:
    """One pass."""
    n = call.numel()
    return single_launch(
        FAMILY, call, over(n), *tensors(0, 1, 2, 3), walk(call.tensors), n, typed_by=1
    )


def two_floats(number: float) -> tuple[float, float]:
    """The nearest float32, and what is left."""
    try:
        near = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        near = number * float("inf")
    rest = number - near
    return near, rest if rest == rest else 0.0


@launches("arange")
def arange(call: CallSpec) -> Plan:
    """One pass; start and step are options, or for whole numbers sizes."""
    n = call.numel()
    if call.tensors[0].dtype.name == "float32":
        steps = _RANGE.pack(*two_floats(call.option(0)), *two_floats(call.option(1)))
        return single_launch(FAMILY, call, over(n), *tensors(0), steps, n)
    whole = *words(call.size(0)), *words(call.size(1))
    return single_launch(FAMILY, call, over(n), *tensors(0), *whole, n)


@launches("tril", "triu")
def triangle(call: CallSpec) -> Plan:
    """One pass; beyond the corners a further shift changes nothing."""
    n, (_, rows, columns) = call.numel(), call.tensors[0].shape
    moved = max(0, min(rows + columns + 2, call.size(0) + rows + 1))
    args = n, rows, columns, moved, int(call.kernel == "tril")
    return single_launch(FAMILY, call, over(n), *tensors(0, 1), *args, kernel="triangle")
