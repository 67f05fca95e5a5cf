"""Rows in the order of `split.shuffled`, for as many as a table may have."""

from __future__ import annotations

from array import array

from gradcli import engine
from gradcli.data.samples import tensor_of
from gradcli.data.split import shuffled
from gradcli.engine import Tensor
from gradcli.engine.array import empty, run

_LONGEST = 108  # bytes before the number, for which the kernel has room
_RANGES = 8  # sorted one by one, as sorting takes four times the memory of what is sorted


def order_of(count: int, seed: int) -> Tensor:
    """0..count-1 as `shuffled(count, seed)` has them, as int64."""
    before = f"{seed}:".encode()
    if len(before) <= _LONGEST:
        keys = _beginnings(before, count)
        order = engine.cat([_sorted_range(keys, number) for number in range(_RANGES)])
        in_order = engine.index_select(keys, 0, order)
        if not (in_order[1:] == in_order[:-1]).any().item():
            return order
    # A beginning came twice, as in every second table of 2^32 rows.
    return tensor_of(array("q", shuffled(count, seed)), (count,))


def _beginnings(before: bytes, count: int) -> Tensor:
    """What the digests begin with by which `shuffled` sorts, as numbers of the same order."""
    keys = empty((count,), engine.int64)
    run("digest_numbers", engine.frombuffer(before, dtype=engine.uint8).array, keys)
    return Tensor(keys)


def _sorted_range(keys: Tensor, number: int) -> Tensor:
    """The places of the keys in one of equal ranges of all numbers, by the keys."""
    width = 2**64 // _RANGES
    first = number * width - 2**63
    inside = (keys >= first) & (keys <= first + (width - 1))
    places = inside.nonzero().reshape(-1)
    _, order = engine.sort(engine.index_select(keys, 0, places))
    return engine.index_select(places, 0, order)
