"""Rows in the order of `split.shuffled`, for as many as a table may have."""

from __future__ import annotations

from array import array

from gradcli import engine
from gradcli.data.samples import tensor_of
from gradcli.data.split import shuffled
from gradcli.engine import Tensor
from gradcli.engine.array import empty, run

_LONGEST = 108  # bytes before the number, for which the kernel has room
# Keys are sorted in 2^_HALVINGS ranges, or in fewer where each has no more than _KEYS of them: that
# is faster, and sorting takes four times the memory of what is sorted.
_HALVINGS, _KEYS = 3, 1 << 18


def order_of(count: int, seed: int) -> Tensor:
    """0..count-1 as `shuffled(count, seed)` has them, as int64."""
    before = f"{seed}:".encode()
    if len(before) <= _LONGEST:
        keys = _beginnings(before, count)
        ranges = 1 << min(_HALVINGS, (count // _KEYS).bit_length())
        order = engine.cat([_sorted_range(keys, number, ranges) for number in range(ranges)])
        in_order = engine.index_select(keys, 0, order)
        if not (in_order[1:] == in_order[:-1]).any().item():
            return order
    # A beginning came twice, as in every second table of 2^32 rows.
    return tensor_of(array("q", shuffled(count, seed)), (count,))


def _beginnings(before: bytes, count: int) -> Tensor:
    """What the digests begin with by which `shuffled` sorts, as numbers of the same order."""
    bits = empty((count,), engine.float64)
    run("digest_numbers", engine.frombuffer(before, dtype=engine.uint8).array, bits)
    return engine.frombuffer(Tensor(bits).memoryview().cast("B"), dtype=engine.int64)


def _sorted_range(keys: Tensor, number: int, ranges: int) -> Tensor:
    """The places of the keys in one of so many equal ranges of all numbers, by the keys."""
    width = 2**64 // ranges
    first = number * width - 2**63
    inside = (keys >= first) & (keys <= first + (width - 1))
    indices = inside.nonzero().reshape(-1)
    _, order = engine.sort(engine.index_select(keys, 0, indices))
    return engine.index_select(indices, 0, order)
