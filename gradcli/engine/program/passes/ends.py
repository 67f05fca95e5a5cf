"""Ends: a chain widens the bfloat16 that it reads and rounds what is stored so.

Without it a copy before the chain and one behind it would do that, each with a way to memory and
back.
"""

from __future__ import annotations

from dataclasses import replace

from gradcli.engine.dtype import bfloat16, float32
from gradcli.engine.program.passes.chains import may_belong, one_call
from gradcli.engine.program.passes.dead import dead_calls
from gradcli.engine.program.passes.flow import Flow, as_shape, meets, view_in
from gradcli.engine.program.record import Call, View


def ends(calls: list[Call]) -> list[Call]:
    """Chains, and elementwise calls as such, with their ends in bfloat16."""
    flow = Flow(calls)
    chained = [_as_chain(flow, i) or call for i, call in enumerate(calls)]
    return dead_calls(_reading(_writing(chained)))


def _as_chain(flow: Flow, i: int) -> Call | None:
    """An elementwise call beside a copy from or to bfloat16 as a chain of one step."""
    call = flow.calls[i]
    if not may_belong(flow, i):
        return None
    beside = any(_widened(flow, i, view) for view in call.inputs)
    return one_call(flow, (i,)) if beside or _rounded(flow, i, call.outputs[0]) else None


def _writing(calls: list[Call]) -> list[Call]:
    """Outputs that are only copied to bfloat16 are written there."""
    flow, rewritten = Flow(calls), list[Call | None](calls)
    for i, call in enumerate(calls):
        if call.kernel != "chain":
            continue
        outputs = list(call.outputs)
        for slot, view in enumerate(outputs):
            end = _rounded(flow, i, view)
            if end is not None:
                outputs[slot], rewritten[end[1]] = end[0], None
        rewritten[i] = replace(call, outputs=tuple(outputs))
    return [call for call in rewritten if call is not None]


def _reading(calls: list[Call]) -> list[Call]:
    """Inputs that are copies of bfloat16 are read where that lies."""
    flow = Flow(calls)
    return [
        replace(call, inputs=tuple(_widened(flow, i, view) or view for view in call.inputs))
        if call.kernel == "chain"
        else call
        for i, call in enumerate(calls)
    ]


def _rounded(flow: Flow, i: int, out: View) -> tuple[View, int] | None:
    """Where a copy rounds an output of call i to, if nobody else reads that; and which copy."""
    readers = flow.readers(out.buffer)
    if out.buffer.persistent or not out.whole or flow.maker(out.buffer) != i or len(readers) != 1:
        return None
    (copy_index,) = readers
    copy = flow.calls[copy_index]
    if copy.kernel != "copy" or copy_index < i:
        return None
    (source,), (target,) = copy.inputs, copy.outputs
    if target.dtype is not bfloat16 or not source.whole or not target.contiguous:
        return None
    apart = not any(meets(target, view) for view in flow.calls[i].views)
    there = as_shape(target, out.shape)
    if there is None or not apart or not flow.may_be_written_at(target, i, copy_index):
        return None
    return there, copy_index


def _widened(flow: Flow, i: int, view: View) -> View | None:
    """The bfloat16 of which an input of call i is a copy, as the input sees it."""
    copy_index = flow.maker(view.buffer)
    if copy_index is None or copy_index > i or view.buffer.persistent or view.dtype is not float32:
        return None
    copy = flow.calls[copy_index]
    if copy.kernel != "copy" or copy.inputs[0].dtype is not bfloat16 or not copy.outputs[0].whole:
        return None
    (source,) = copy.inputs
    if not source.contiguous and not view.whole:
        return None
    result = view_in(view, replace(source, dtype=float32))  # elements are counted, not bytes
    if result is None:
        return None
    result = replace(result, dtype=bfloat16)
    changed = flow.is_written(source, copy_index, i)
    return None if changed or any(meets(result, out) for out in flow.calls[i].outputs) else result
