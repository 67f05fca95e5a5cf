"""Repeats: what stands in memory already is not computed again.

Of elementwise calls and copies alone, as where autocast rounds the input of three layers three
times; and only while the first result is in use anyway, so that no memory is held for it.
"""

from __future__ import annotations

from dataclasses import replace

from gradcli.engine.device.kernels import FACTS
from gradcli.engine.program.passes.flow import Flow
from gradcli.engine.program.record import Buffer, Call, View


def repeats(calls: list[Call]) -> list[Call]:
    """Results that are the same numbers in the same order as one buffer."""
    flow, remaining = Flow(calls), list[Call]()
    first: dict[object, int] = {}
    instead: dict[Buffer, Buffer] = {}
    for i, call in enumerate(calls):
        views = tuple(_redirect(view, instead) for view in call.inputs)
        outputs = tuple(_redirect(view, instead) for view in call.outputs)
        if any(a is not b for a, b in zip((*views, *outputs), call.views, strict=True)):
            call = replace(call, inputs=views, outputs=outputs)
        if _may_repeat(flow, i):
            out, key = call.outputs[0], _key(call)
            before = first.get(key)
            if before is not None and _stands(flow, call, before, i):
                instead[out.buffer] = calls[before].outputs[0].buffer
                continue
            first[key] = i
        remaining.append(call)
    return remaining


def _redirect(view: View, instead: dict[Buffer, Buffer]) -> View:
    target = instead.get(view.buffer)
    return view if target is None else replace(view, buffer=target)


def _may_repeat(flow: Flow, i: int) -> bool:
    """Whether a call only makes one intermediate that nobody else writes."""
    call = flow.calls[i]
    if call.kernel != "copy" and not (call.kernel and FACTS[call.kernel].elementwise):
        return False
    (out,) = call.outputs
    return out.whole and not out.buffer.persistent and flow.maker(out.buffer) == i


def _key(call: Call) -> object:
    """Calls with the same key give the same numbers, as long as their inputs do not change."""
    inputs = tuple((view.buffer, view.layout) for view in call.inputs)
    out = call.outputs[0]
    options = tuple(float(option).hex() for option in call.options)  # 0.0 is not -0.0
    return call.kernel, call.sizes, options, inputs, out.layout, out.buffer.rerun


def _stands(flow: Flow, call: Call, before: int, i: int) -> bool:
    """Whether call i finds its result in that of an earlier one, which is in use until then."""
    readers = flow.readers(flow.calls[before].outputs[0].buffer)
    changed = any(flow.is_written(view, before, i) for view in call.inputs)
    return bool(readers) and readers[-1] > i and not changed
