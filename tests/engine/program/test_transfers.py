"""Transfers: what a replay copies, and where its ends are once they were moved."""

from gradcli.engine.device.cpu import ffi
from gradcli.engine.device.program import Transfers

PLACES = [ffi.new("char[]", 8) for _ in range(6)]
A, B, C, D, E, F = (ffi.cast("void *", place) for place in PLACES)


def test_more_transfers_stand_behind_those_whose_ends_were_moved() -> None:
    first = Transfers([(A, 0, B, 4, 4), (C, 0, D, 0, 8)])
    first.set_source(0, E)
    first.alias(1)
    both = first.and_also([(B, 0, F, 8, 8)])
    assert (first.count, both.count) == (2, 3)
    rows = [(t.to, t.source, t.source_step, t.nbytes) for t in both.structs[0:3]]
    assert rows == [(A, E, 4, 4), (ffi.NULL, D, 0, 8), (B, F, 8, 8)]
