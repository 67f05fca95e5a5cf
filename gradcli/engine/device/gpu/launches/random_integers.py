"""Launches of whole random numbers and random orders."""

from __future__ import annotations

from gradcli.engine.device.gpu.launch import (
    CallSpec,
    Plan,
    Scratch,
    TensorArg,
    launch,
    launches,
    over,
    tensors,
    words,
)
from gradcli.engine.device.gpu.sorting import sort

FAMILY = "random_integers"


def _blocks(n: int) -> int:
    """Blocks of Philox for n numbers of two words; a thread each."""
    return -(-n // 128) * 64


@launches("randint")
def randint(call: CallSpec) -> Plan:
    """sizes: which draw, the lowest number, and the one above the highest."""
    n, (low, high) = call.numel(1), (call.size(1), call.size(2))
    if not n:
        return Plan()
    args = n, call.size(0), *words(low), *words(high - low)
    return Plan((launch(FAMILY, "randint", "i64", over(_blocks(n)), *tensors(0, 1), *args),))


@launches("randperm")
def randperm(call: CallSpec) -> Plan:
    """All draws at once; sorted, they say who drew a place last, and that leads to the order."""
    n = call.numel(1)
    if not n:
        return Plan()
    drawn, last, before = Scratch(0), Scratch(8 * n), Scratch(12 * n)
    found = sort(drawn, "i64", 1, n, 16 * n)
    draws = TensorArg(0), drawn, n, call.size(0)
    links = found.keys, found.places, last, before
    every = (
        launch(FAMILY, "order_draws", "i64", over(_blocks(n)), *draws),
        launch(FAMILY, "order_none", "i64", over(n), last, n),
        *found.launches,
        launch(FAMILY, "order_links", "i64", over(n), *links, n),
        launch(FAMILY, "order_places", "i64", over(n), drawn, last, before, TensorArg(1), n),
    )
    return Plan(every, found.end)
