"""Rows in the order of `split.shuffled`, for as many as a table may have."""

from __future__ import annotations

import sys
from array import array
from hashlib import blake2b

from gradcli import engine
from gradcli.data.samples import tensor_of
from gradcli.engine import Tensor

_SIZE = 16  # bytes of a digest
_TOGETHER = 1 << 16


def order_of(count: int, seed: int) -> Tensor:
    """0..count-1 as `shuffled(count, seed)` has them, as int64."""
    begin = blake2b(f"{seed}:".encode(), digest_size=_SIZE)
    digests = bytearray()
    for at in range(0, count, _TOGETHER):
        for index in range(at, min(at + _TOGETHER, count)):
            digest = begin.copy()
            digest.update(b"%d" % index)
            digests += digest.digest()
    return sorted_places(digests)


def sorted_places(digests: bytes | bytearray) -> Tensor:
    """The places of digests of 16 bytes, sorted by their bytes; those of equal ones as they lie."""
    keys = array("q", digests)[::2]  # the first half of each
    if sys.byteorder == "little":
        keys.byteswap()
    # The sign changes place so that numbers are in the order of bytes.
    signed = engine.frombuffer(keys, dtype=engine.int64) ^ -(1 << 63)
    in_order, places = engine.sort(signed, stable=True)
    if not (in_order[1:] == in_order[:-1]).any().item():
        return places
    whole = [bytes(digests[at : at + _SIZE]) for at in range(0, len(digests), _SIZE)]
    return tensor_of(array("q", sorted(range(len(whole)), key=whole.__getitem__)), (len(whole),))
