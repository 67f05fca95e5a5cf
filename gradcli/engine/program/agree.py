"""Whether two recordings of one step are the same program.

If Python did something else the second time, or used other memory, a replay would not be what the
step does.
"""

from __future__ import annotations

from gradcli.engine.device.program import copy
from gradcli.engine.program.record import Buffer, Call, Recording
from gradcli.wording import quantity


def difference(first: Recording, second: Recording) -> str:
    """Why the second cannot stand for all that come; empty when it can."""
    if len(first.calls) != len(second.calls):
        return (
            f"it made {quantity(len(first.calls), 'kernel call')} the first time "
            f"and {len(second.calls)} the second"
        )
    pairs: dict[Buffer, Buffer] = {}
    for number, (a, b) in enumerate(zip(first.calls, second.calls, strict=True)):
        if a.kernel != b.kernel or a.name != b.name:
            return f"its call {number} was '{a.name}' the first time and '{b.name}' the second"
        if a.function != b.function:
            return (
                f"its call {number} called another '{a.name}' the second time; "
                "give outside.call the same function in each step"
            )
        if (a.sizes, a.options) != (b.sizes, b.options):
            return (
                f"the options of its call {number}, '{a.name}', changed from "
                f"{a.sizes} {a.options} to {b.sizes} {b.options}"
            )
        reason = _layouts_differ(a, b) or memory_differs(a, b, pairs)
        if reason:
            return f"its call {number}, '{a.name}', {reason}"
    return ""


def _layouts_differ(a: Call, b: Call) -> str:
    for x, y in zip(a.views, b.views, strict=True):
        if x.layout != y.layout:
            return f"had a tensor of shape {x.shape} the first time and {y.shape} the second"
    return ""


def memory_differs(a: Call, b: Call, pairs: dict[Buffer, Buffer]) -> str:
    """Why the memory of one call cannot be that of the other; `pairs` is what was seen so far."""
    for x, y in zip(a.views, b.views, strict=True):
        if pairs.setdefault(x.buffer, y.buffer) is not y.buffer:
            return "used other memory the second time"
        if not _same_memory(x.buffer, y.buffer):
            return (
                "reads memory that the step before had made or that Python filled anew; "
                "keep such values in tensors that are changed in place (copy_), or pass them in"
            )
    return ""


def _same_memory(x: Buffer, y: Buffer) -> bool:
    """Both intermediates, one and the same storage, numbers of one owner, or equal constants."""
    if x.owner is not None or y.owner is not None:
        return x.owner is y.owner
    if x.internal or y.internal:
        return x.internal and y.internal
    if x.storage is y.storage:
        return True
    if x.storage is None or y.storage is None or x.has_writer or y.has_writer:
        return False
    return copy(x.storage) == copy(y.storage)
