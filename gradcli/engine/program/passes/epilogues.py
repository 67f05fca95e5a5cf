"""Epilogues: an elementwise call is done by the product before it, on blocks still in the cache."""

from __future__ import annotations

from gradcli.engine.device.kernels import FACTS
from gradcli.engine.program.passes.flow import Flow, as_shape, meets, nothing_like
from gradcli.engine.program.record import Call, View

# The same kernel with a unary row behind it; its tensors are those of the kernel, then what the
# row keeps (slopes only), the kernel's own output (where somebody else reads it) and the result.
_THEN = {facts.then_of: facts for facts in FACTS.values() if facts.then_of}

# Bytes above which a slope is left to a call of its own: what was kept is no longer in the second
# cache, and a call by itself reads it in longer runs and streams the result past the caches.
_LARGEST_SLOPE = 1 << 20


def epilogues(calls: list[Call]) -> list[Call]:
    """f(a b + bias) and (a b) * slope(saved) in one call, where f's call followed."""
    flow = Flow(calls)
    rewritten: list[Call | None] = list(calls)
    for i, call in enumerate(calls):
        if call.kernel not in _THEN:
            continue
        for j in flow.readers(call.outputs[0].buffer):
            fused = _fused(flow, i, j) if j > i else None
            if fused is not None:
                rewritten[i], rewritten[j] = fused, None
                break
    return [call for call in rewritten if call is not None]


def _fused(flow: Flow, i: int, j: int) -> Call | None:
    """Calls i and j in one, at the position of the first; None when that would change anything."""
    product, row = flow.calls[i], flow.calls[j]
    if row.function is not None or not (FACTS[row.kernel].unary or _small_slope(row)):
        return None
    (pre,), grad, saved, (end,) = product.outputs, row.inputs[-1], row.inputs[:-1], row.outputs
    same = pre.dtype is grad.dtype and pre.offset == grad.offset and pre.numel == grad.numel
    if grad.buffer is not pre.buffer or not same or flow.is_written(pre, i, j):
        return None
    apart = not any(meets(end, view) for view in (*product.views, *saved))
    if not apart or not flow.may_be_written_at(end, i, j):
        return None
    if any(meets(view, pre) or flow.is_written(view, i - 1, j) for view in saved):
        return None
    keep_product = pre.buffer.persistent or flow.readers(pre.buffer) != [j]
    return _call(product, row, keep_product=keep_product)


def _small_slope(row: Call) -> bool:
    return FACTS[row.kernel].unary_slope and all(
        end.numel * end.dtype.size <= _LARGEST_SLOPE for end in row.outputs
    )


def _call(product: Call, row: Call, keep_product: bool) -> Call | None:
    (pre,), none = product.outputs, nothing_like(product.outputs[0])
    slope = FACTS[row.kernel].unary_slope
    saved: View | None = as_shape(row.inputs[0], pre.shape) if slope else none
    end = as_shape(row.outputs[0], pre.shape)
    if saved is None or end is None:
        return None
    then = _THEN[product.kernel]
    sizes = (*product.sizes, *[0] * then.row_size)[: then.row_size]
    return Call(
        then.name,
        (*product.inputs, saved),
        (pre if keep_product else none, end),
        (*sizes, FACTS[row.kernel].number),
        _options(product, row),
    )


def _options(product: Call, row: Call) -> tuple[float, ...]:
    """The row's p and q, and behind them what the product may round."""
    return (*row.options, 0.0, 0.0)[:2] + product.options if product.options else row.options
