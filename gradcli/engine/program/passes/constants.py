"""Constants: what is the same in every step is computed once, when the program is made."""

from __future__ import annotations

from dataclasses import replace

from gradcli.engine.array import Array, run
from gradcli.engine.device import cpu
from gradcli.engine.program.passes.flow import Flow
from gradcli.engine.program.record import Buffer, Call, View

_LARGEST = 1 << 14  # bytes; they stay in memory, where an intermediate would share its memory


def constants(calls: list[Call]) -> list[Call]:
    """Calls whose inputs are constants, or that have none, run now."""
    flow = Flow(calls)
    replacements: dict[Buffer, Buffer] = {}
    remaining = []
    for i, call in enumerate(calls):
        constant = all(view.buffer in replacements for view in call.inputs)
        call = replace(call, inputs=tuple(_redirect(view, replacements) for view in call.inputs))
        if constant and call.outputs and all(_new(flow, i, view) for view in call.outputs):
            _run(call, replacements)
        else:
            remaining.append(call)
    return remaining


def _new(flow: Flow, i: int, view: View) -> bool:
    """Whether call i alone writes this, an intermediate that is small."""
    buffer = view.buffer
    return (
        flow.maker(buffer) == i
        and view.whole
        and not buffer.persistent
        and buffer.nbytes <= _LARGEST
    )


def _redirect(view: View, replacements: dict[Buffer, Buffer]) -> View:
    return replace(view, buffer=replacements.get(view.buffer, view.buffer))


def _run(call: Call, replacements: dict[Buffer, Buffer]) -> None:
    """Compute the outputs into memory of their own."""
    for view in call.outputs:
        device, nbytes = view.buffer.device, view.buffer.nbytes
        storage = cpu.allocate(nbytes) if device is None else device.allocate(nbytes)
        replacements[view.buffer] = Buffer(nbytes, storage, internal=True, device=device)
    arrays = []
    for view in (*call.inputs, *(_redirect(view, replacements) for view in call.outputs)):
        assert view.buffer.storage is not None
        arrays.append(Array(view.buffer.storage, view.offset, view.shape, view.strides, view.dtype))
    run(call.kernel, *arrays, sizes=call.sizes, options=call.options)
