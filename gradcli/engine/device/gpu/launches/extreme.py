"""Launches of maximum and minimum along the middle of (outer, n, inner), and their gradients."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import Draft, Errors, launches, over, tensors
from gradcli.engine.device.gpu.lines import lines, parts


@launches("max_along", "min_along")
def extreme(call: Draft) -> None:
    """One launch, or two where n is in chunks."""
    cut = lines(call.tensors[0])
    if cut.chunks == 1:
        call.launch(call.kernel, cut.grid, *tensors(0, 1, 2), cut.packed)
        return
    back, winners = parts(cut), call.scratch(4 * cut.results * cut.chunks)
    call.launch(f"{call.kernel}_parts", cut.grid, *tensors(0), winners, cut.packed)
    args = *tensors(0), winners, *tensors(1, 2), back.packed, cut.n, cut.inner
    call.launch(f"{call.kernel}_of_parts", back.grid, *args)


@launches("select_backward")
def select_backward(call: Draft) -> None:
    """One pass over the gradient of x."""
    count, (_, n, inner) = call.numel(2), call.tensors[2].shape
    args = *tensors(0, 1, 2), Errors(), count, n, inner
    call.launch("select_backward", over(count), *args, suffix=call.suffix(2))


@launches("ties_backward")
def ties_backward(call: Draft) -> None:
    """Winners are counted, in parts where n is in chunks; then one pass shares the gradient."""
    cut, count = lines(call.tensors[0]), call.numel()
    if not count:
        return
    counts, in_parts = call.scratch(4 * cut.results), call.scratch(4 * cut.results * cut.chunks)
    into = counts if cut.chunks == 1 else in_parts
    call.launch("ties_parts", cut.grid, *tensors(0, 1), into, cut.packed)
    if cut.chunks > 1:
        back = parts(cut)
        call.launch("ties_of_parts", back.grid, in_parts, counts, back.packed)
    args = counts, *tensors(3), count, cut.n, cut.inner
    call.launch("ties_backward", over(count), *tensors(0, 1, 2), *args)
