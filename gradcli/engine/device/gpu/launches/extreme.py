"""Launches of maximum and minimum along the middle of (outer, n, inner), and their gradients."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import (
    SUFFIX,
    Errors,
    Plan,
    Scratch,
    Shapes,
    Tensor,
    first,
    launches,
    over,
    step,
)
from gradcli.engine.device.gpu.lines import lines, parts

FAMILY = "extreme"


@launches("max_along", "min_along")
def extreme(call: Shapes) -> Plan:
    """One launch, or two where n is in chunks."""
    cut = lines(call.tensors[0])
    if not cut.results:
        return Plan()
    suffix, outs = SUFFIX[call.tensors[0].dtype.name], (Tensor(1), Tensor(2))
    if cut.chunks == 1:
        return Plan((step(FAMILY, call.kernel, suffix, cut.grid, Tensor(0), *outs, cut.packed),))
    back = parts(cut)
    some = step(FAMILY, f"{call.kernel}_parts", suffix, cut.grid, Tensor(0), Scratch(0), cut.packed)
    args = Tensor(0), Scratch(0), *outs, back.packed
    last = step(FAMILY, f"{call.kernel}_of_parts", suffix, back.grid, *args, cut.n, cut.inner)
    return Plan((some, last), 4 * cut.results * cut.chunks)


@launches("select_backward")
def select_backward(call: Shapes) -> Plan:
    """One pass over the gradient of x."""
    count, (_, n, inner) = call.numel(2), call.tensors[2].shape
    if not count:
        return Plan()
    args = Tensor(0), Tensor(1), Tensor(2), Errors(), count, n, inner
    return Plan((step(FAMILY, "select_backward", "f32", over(count), *args),))


@launches("ties_backward")
def ties_backward(call: Shapes) -> Plan:
    """Winners are counted, in parts where n is in chunks; then one pass shares the gradient."""
    cut, count = lines(call.tensors[0]), call.numel()
    if not count:
        return Plan()
    counts, behind = Scratch(0), Scratch(4 * cut.results)
    into = counts if cut.chunks == 1 else behind
    every = [step(FAMILY, "ties_parts", "f32", cut.grid, Tensor(0), Tensor(1), into, cut.packed)]
    if cut.chunks > 1:
        back = parts(cut)
        every.append(step(FAMILY, "ties_of_parts", "f32", back.grid, behind, counts, back.packed))
    args = counts, Tensor(3), count, cut.n, cut.inner
    every.append(step(FAMILY, "ties_backward", "f32", over(count), *first(3), *args))
    return Plan(tuple(every), 4 * cut.results * (cut.chunks + 1))
