"""Launches of rows picked by index, where, ranges and triangles."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import Arg, Draft, Errors, launches, over, tensors, words
from gradcli.engine.device.gpu.walk import walk

_RANGE = struct.Struct("4f")


@launches("index_select", "embedding")
def index_select(call: Draft) -> None:
    """One pass over what is picked."""
    (outer, n, inner), m = call.tensors[0].shape, call.numel(1)
    count = outer * m * max(1, inner)
    call.launch("index_select", over(count), *tensors(0, 1, 2), count, n, m, inner, Errors())


@launches("where")
def where(call: Draft) -> None:
    """One pass."""
    n, steps = call.numel(), walk(call.tensors)
    call.launch("where", over(n), *tensors(0, 1, 2, 3), steps, n, suffix=call.suffix(1))


def two_floats(number: float) -> tuple[float, float]:
    """The nearest float32, and what is left."""
    try:
        near = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        near = number * float("inf")
    rest = number - near
    return near, rest if rest == rest else 0.0


@launches("arange")
def arange(call: Draft) -> None:
    """One pass; start and step are options, or for whole numbers sizes."""
    n = call.numel()
    steps: tuple[Arg, ...] = *words(call.size(0)), *words(call.size(1))
    if call.suffix() == "f32":
        steps = (_RANGE.pack(*two_floats(call.option(0)), *two_floats(call.option(1))),)
    call.launch("arange", over(n), *tensors(0), *steps, n)


@launches("tril", "triu")
def triangle(call: Draft) -> None:
    """One pass; beyond the corners a further shift changes nothing."""
    n, (_, rows, columns) = call.numel(), call.tensors[0].shape
    shift = max(0, min(rows + columns + 2, call.size(0) + rows + 1))
    args = n, rows, columns, shift, call.kernel == "tril"
    call.launch("triangle", over(n), *tensors(0, 1), *args)
