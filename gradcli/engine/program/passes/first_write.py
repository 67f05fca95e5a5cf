"""First write: what is made only to be copied somewhere is made there."""

from __future__ import annotations

from dataclasses import replace

from gradcli.engine.device.kernels import FACTS
from gradcli.engine.program.passes.flow import Flow, meets, view_in
from gradcli.engine.program.passes.strides import reads, writes
from gradcli.engine.program.record import Call, View


def first_write(calls: list[Call]) -> list[Call]:
    """An intermediate that is copied elsewhere is computed in the target from the start."""
    flow, needless = Flow(calls), set[int]()
    for number, call in enumerate(calls):
        changes = _without_copy(flow, number) if call.kernel == "copy" else None
        if changes is not None:
            needless.add(number)
            flow.change({**changes, number: None})
    return [call for number, call in enumerate(flow.calls) if number not in needless]


def _without_copy(flow: Flow, copied: int) -> dict[int, Call] | None:
    """What the calls become without this copy; None when it is needed."""
    calls = flow.calls
    (source,), (target,) = calls[copied].inputs, calls[copied].outputs
    if source.buffer.persistent or not source.whole or source.dtype is not target.dtype:
        return None
    writers = flow.writers(source.buffer)
    users = sorted({*writers, *flow.readers(source.buffer)})
    if not writers or writers[0] != users[0] or writers[-1] > copied:
        return None
    if not flow.may_be_written_at(target, writers[0], copied):
        return None
    changes = {}
    for user in users:
        if user != copied:
            call = _there(calls[user], source, target)
            if call is None or (user > copied and flow.is_written(target, copied, user + 1)):
                return None
            changes[user] = call
    return changes


def _there(call: Call, source: View, target: View) -> Call | None:
    """The call with its views of the source's buffer in the target; None when it cannot be."""
    own = [i for i, view in enumerate(call.views) if view.buffer is source.buffer]
    targets: dict[int, View | None] = {i: view_in(call.views[i], target) for i in own}
    views = [targets.get(i, view) for i, view in enumerate(call.views)]
    present = [view for view in views if view is not None]
    if len(present) < len(views):
        return None
    count = len(call.inputs)
    inputs, outputs = present[:count], present[count:]
    fit = all(reads(call.kernel, i, view) for i, view in enumerate(inputs) if i in targets)
    fit = fit and all(writes(call.kernel, v) for i, v in enumerate(outputs, count) if i in targets)
    result = replace(call, inputs=tuple(inputs), outputs=tuple(outputs))
    return result if fit and _apart(result) else None


def _apart(call: Call) -> bool:
    """Whether the outputs meet nothing else, but where an elementwise call overwrites an input."""
    for i, out in enumerate(call.outputs):
        if any(meets(out, other) for other in call.outputs[:i]):
            return False
        over = [view for view in call.inputs if meets(view, out)]
        if over and not (
            FACTS[call.kernel].elementwise
            and all(view.same(out) for view in over)
            and _without_repeats(out)
        ):
            return False
    return True


def _without_repeats(view: View) -> bool:
    """Whether no element stands in it twice: what is written would be read as a later one."""
    reach = 0
    for step, size in sorted(zip(map(abs, view.strides), view.shape, strict=True)):
        if size > 1 and step <= reach:
            return False
        reach += step * (size - 1)
    return True
