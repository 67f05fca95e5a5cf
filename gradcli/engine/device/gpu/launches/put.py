"""Launches of scatter: elements put by index, in the place of others or joined with them."""

from __future__ import annotations

import struct

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
    tensors,
)
from gradcli.engine.device.gpu.launches.gather import FAMILY as _GATHER
from gradcli.engine.device.gpu.launches.gather import claims
from gradcli.engine.device.gpu.lines import even_cut
from gradcli.engine.device.gpu.sorting import sort

FAMILY = "put"
_PUTS = struct.Struct("4I")
_REPLACED = 0  # sizes[0]: the last one stays; else they are joined


@launches("scatter")
def scatter(call: CallSpec) -> Plan:
    """X with elements replaced, or joined with what is put there; sizes[0] says how."""
    size = call.numel(3)
    if not size:
        return Plan()
    return _replaced(call, size) if call.size(0) == _REPLACED else _joined(call, size)


def _sizes(call: CallSpec) -> tuple[int, int, int]:
    (_, n, inner), m = call.tensors[0].shape, call.tensors[1].shape[1]
    return n, m, inner


def _replaced(call: CallSpec, size: int) -> Plan:
    """Who puts to each place last, then one pass over the result."""
    suffix = SUFFIX[call.tensors[0].dtype.name]
    found = claims(suffix, 1, call.numel(1), size, *_sizes(call))
    args = *tensors(0, 2), Scratch(0), TensorArg(3), size
    last = launch(_GATHER, "put_last", suffix, over(size), *args)
    return Plan((*found, last), 4 * size)


def _joined(call: CallSpec, size: int) -> Plan:
    """A copy of x, the places in order, and what is put there joined."""
    suffix, count = SUFFIX[call.tensors[0].dtype.name], call.numel(1)
    copy = launch(_GATHER, "put_copy", suffix, over(size), *tensors(0, 3), size)
    if not count:
        return Plan((copy,))
    args = TensorArg(1), Scratch(0), count, *_sizes(call), Errors()
    keys = launch(_GATHER, "put_keys", suffix, over(count), *args)
    found = sort(Scratch(0), "i64", 1, count, 8 * count)
    chunk = even_cut(count)
    chunks = -(-count // chunk)
    puts, parts = _PUTS.pack(count, chunk, chunks, call.size(0)), Scratch(found.end)
    order = found.keys, found.places
    sums = TensorArg(2), *order, TensorArg(3), parts, puts
    some = launch(FAMILY, "put_parts", suffix, over(chunks), *sums)
    rest = launch(FAMILY, "put_joins", suffix, over(chunks), found.keys, parts, TensorArg(3), puts)
    return Plan((copy, keys, *found.launches, some, rest), found.end + 16 * chunks)
