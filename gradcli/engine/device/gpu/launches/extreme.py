"""Launches of maximum and minimum along the middle of (outer, n, inner), and their gradients."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import (
    SUFFIX,
    CallSpec,
    Errors,
    Plan,
    Scratch,
    TensorArg,
    launch,
    launches,
    over,
    single_launch,
    tensors,
)
from gradcli.engine.device.gpu.lines import lines, parts

FAMILY = "extreme"


@launches("max_along", "min_along")
def extreme(call: CallSpec) -> Plan:
    """One launch, or two where n is in chunks."""
    cut = lines(call.tensors[0])
    if not cut.results:
        return Plan()
    suffix, outs = SUFFIX[call.tensors[0].dtype.name], tensors(1, 2)
    if cut.chunks == 1:
        return single_launch(FAMILY, call, cut.grid, *tensors(0, 1, 2), cut.packed)
    back = parts(cut)
    to_parts = TensorArg(0), Scratch(0), cut.packed
    some = launch(FAMILY, f"{call.kernel}_parts", suffix, cut.grid, *to_parts)
    args = TensorArg(0), Scratch(0), *outs, back.packed
    last = launch(FAMILY, f"{call.kernel}_of_parts", suffix, back.grid, *args, cut.n, cut.inner)
    return Plan((some, last), 4 * cut.results * cut.chunks)


@launches("select_backward")
def select_backward(call: CallSpec) -> Plan:
    """One pass over the gradient of x."""
    count, (_, n, inner) = call.numel(2), call.tensors[2].shape
    if not count:
        return Plan()
    args = *tensors(0, 1, 2), Errors(), count, n, inner
    return Plan((launch(FAMILY, "select_backward", "f32", over(count), *args),))


@launches("ties_backward")
def ties_backward(call: CallSpec) -> Plan:
    """Winners are counted, in parts where n is in chunks; then one pass shares the gradient."""
    cut, count = lines(call.tensors[0]), call.numel()
    if not count:
        return Plan()
    counts, behind = Scratch(0), Scratch(4 * cut.results)
    into = counts if cut.chunks == 1 else behind
    every = [launch(FAMILY, "ties_parts", "f32", cut.grid, *tensors(0, 1), into, cut.packed)]
    if cut.chunks > 1:
        back = parts(cut)
        every.append(launch(FAMILY, "ties_of_parts", "f32", back.grid, behind, counts, back.packed))
    args = counts, TensorArg(3), count, cut.n, cut.inner
    every.append(launch(FAMILY, "ties_backward", "f32", over(count), *tensors(0, 1, 2), *args))
    return Plan(tuple(every), 4 * cut.results * (cut.chunks + 1))
