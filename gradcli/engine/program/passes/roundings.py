"""Roundings: what is only stored in bfloat16 and widened again is kept in float32, rounded to it.

The numbers are the same, and both are elementwise from there on: the copies between the types are
gone, and the rounding is done by a chain or by the product before it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace

from gradcli.engine.dtype import bfloat16, float32
from gradcli.engine.program.record import Buffer, Call, View
from gradcli.engine.shape import contiguous_strides

_ROW = "bfloat16"  # of scalar_ops.h: the nearest such number


def roundings(calls: list[Call]) -> list[Call]:
    """Intermediates in bfloat16 that calls only copy, as float32."""
    half: set[Buffer] = set()
    candidates: dict[Buffer, Buffer] = {}
    for call in calls:
        for view in call.views:
            buffer = view.buffer
            if view.dtype is not bfloat16:
                continue
            if buffer.persistent or not _moves(call):
                half.add(buffer)
            elif buffer not in candidates:
                candidates[buffer] = Buffer(
                    2 * buffer.nbytes, internal=True, device=buffer.device, rerun=buffer.rerun
                )
    wide = {old: new for old, new in candidates.items() if old not in half}
    return [new_call for call in calls for new_call in _rewritten(call, wide)]


def _moves(call: Call) -> bool:
    """True for copies, and for filling with a number that bfloat16 has."""
    return call.kernel == "copy" or (call.kernel == "fill" and _exact(call.options[0]))


def _exact(value: float) -> bool:
    try:
        (bits,) = struct.unpack("=I", struct.pack("=f", value))
    except OverflowError:
        return False
    return int(bits) & 0xFFFF == 0


def _rewritten(call: Call, wide: dict[Buffer, Buffer]) -> Iterator[Call]:
    """The call on the wide buffers; what it would have rounded is rounded by a row."""
    inputs, outputs = (
        tuple(_wide(view, wide) for view in views) for views in (call.inputs, call.outputs)
    )
    if outputs == call.outputs or call.kernel == "fill" or call.inputs[0].dtype is bfloat16:
        yield replace(call, inputs=inputs, outputs=outputs)
        return
    (source,), (target,) = inputs, outputs
    if not (source.dtype is float32 and source.contiguous):
        fresh = _like(target)
        yield Call("copy", (source,), (fresh,))
        source = fresh
    end = target if target.contiguous else _like(target)
    yield Call(_ROW, (source,), (end,))
    if end is not target:
        yield Call("copy", (end,), (target,))


def _wide(view: View, wide: dict[Buffer, Buffer]) -> View:
    if view.buffer not in wide:
        return view
    return replace(view, buffer=wide[view.buffer], dtype=float32)


def _like(view: View) -> View:
    """A new float32 intermediate of a view's shape."""
    of = view.buffer
    buffer = Buffer(view.numel * float32.size, internal=True, device=of.device, rerun=of.rerun)
    return View(buffer, 0, view.shape, contiguous_strides(view.shape), float32)
