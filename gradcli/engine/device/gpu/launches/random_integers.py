"""Launches of whole random numbers and random orders."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import Draft, launches, over, tensors, words
from gradcli.engine.device.gpu.sorting import sort


def _blocks(n: int) -> int:
    """Blocks of Philox for n numbers of two words; a thread each."""
    return -(-n // 128) * 64


@launches("randint")
def randint(call: Draft) -> None:
    """sizes: which draw, the lowest number, and the one above the highest."""
    n, (low, high) = call.numel(1), (call.size(1), call.size(2))
    args = *tensors(0, 1), n, call.size(0), *words(low), *words(high - low)
    call.launch("randint", over(_blocks(n)), *args, suffix="i64")


@launches("randperm")
def randperm(call: Draft) -> None:
    """All draws at once; sorted, they say who drew a place last, and that leads to the order."""
    n = call.numel(1)
    draws = call.scratch(8 * n)
    last, before = call.pair(n)
    args = *tensors(0), draws, n, call.size(0)
    call.launch("order_draws", over(_blocks(n)), *args, suffix="i64")
    call.launch("order_none", over(n), last, n, suffix="i64")
    order = sort(call, draws, 1, n, suffix="i64")
    call.launch("order_links", over(n), *order, last, before, n, suffix="i64")
    args = draws, last, before, *tensors(1), n
    call.launch("order_places", over(n), *args, suffix="i64")
