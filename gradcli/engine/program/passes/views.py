"""Views: what was copied only to be read is read where it lies."""

from __future__ import annotations

from dataclasses import replace

from gradcli.engine.program.passes.flow import Flow, meets, view_in
from gradcli.engine.program.passes.strides import reads
from gradcli.engine.program.record import Buffer, Call, View


def views(calls: list[Call]) -> list[Call]:
    """Readers of a copy read its source, and the copy goes where nobody reads it any more."""
    flow = Flow(calls)
    copies: dict[Buffer, int] = {}
    rewritten: list[Call] = []
    live_buffers: set[Buffer] = set()
    for i, call in enumerate(calls):
        inputs = tuple(
            _source(flow, copies, rewritten, number, i) or view
            for number, view in enumerate(call.inputs)
        )
        rewritten.append(replace(call, inputs=inputs))
        live_buffers.update(view.buffer for view in inputs)
        if _is_copy(flow, i):
            copies[call.outputs[0].buffer] = i
    return [
        call
        for call, before in zip(rewritten, calls, strict=True)
        if not (before.outputs and before.outputs[0].buffer in copies)
        or before.outputs[0].buffer in live_buffers
    ]


def _is_copy(flow: Flow, i: int) -> bool:
    """True for a call that copies all of a new buffer from elements of the same type."""
    call = flow.calls[i]
    if call.kernel != "copy" or call.outputs[0].buffer.persistent:
        return False
    (source,), (target,) = call.inputs, call.outputs
    return source.dtype is target.dtype and target.whole and flow.maker(target.buffer) == i


def _source(
    flow: Flow, copies: dict[Buffer, int], rewritten: list[Call], number: int, reader: int
) -> View | None:
    """What call `reader` may read as this input, instead of a copy of it; None for nothing."""
    call = flow.calls[reader]
    view = call.inputs[number]
    copy_index = copies.get(view.buffer)
    if copy_index is None:
        return None
    source = rewritten[copy_index].inputs[0]
    direct = view_in(view, source)
    changed = flow.is_written(source, copy_index, reader)
    if direct is None or changed or any(meets(source, out) for out in call.outputs):
        return None
    return direct if reads(call.kernel, number, direct) else None
