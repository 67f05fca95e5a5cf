"""Rows in the order of `split.shuffled`, for as many as a table may have."""

from __future__ import annotations

import sys
from array import array
from hashlib import blake2b

from gradcli import engine
from gradcli.data.samples import tensor_of
from gradcli.data.split import shuffled
from gradcli.engine import Tensor

_BEGINNING = 8  # bytes of a digest that are sorted, as one number
_TOGETHER = 1 << 14
_FLIPPED = bytes(byte ^ 0x80 for byte in range(256))  # unsigned numbers in the order of signed ones


def order_of(count: int, seed: int) -> Tensor:
    """0..count-1 as `shuffled(count, seed)` has them, as int64."""
    keys = array("q")
    for at in range(0, count, _TOGETHER):
        beginnings = bytearray(_beginnings(seed, range(at, min(at + _TOGETHER, count))))
        beginnings[::_BEGINNING] = beginnings[::_BEGINNING].translate(_FLIPPED)
        keys.frombytes(beginnings)
    if sys.byteorder == "little":
        keys.byteswap()
    in_order, places = engine.sort(engine.frombuffer(keys, dtype=engine.int64))
    if (in_order[1:] == in_order[:-1]).any().item():  # of 2^32 rows in every second table
        return tensor_of(array("q", shuffled(count, seed)), (count,))
    return places


def _beginnings(seed: int, indices: range) -> bytes:
    """What the digests begin with by which `shuffled` sorts."""
    begin, size = blake2b(f"{seed}:".encode(), digest_size=16), _BEGINNING

    def beginning(index: int) -> bytes:
        digest = begin.copy()
        digest.update(b"%d" % index)
        return digest.digest()[:size]

    return b"".join(map(beginning, indices))
