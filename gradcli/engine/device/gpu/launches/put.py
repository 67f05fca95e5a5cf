"""Launches of scatter: elements put by index, in the place of others or joined with them."""

from __future__ import annotations

import struct

from gradcli.engine.device.gpu.launch import Draft, Errors, launches, over, tensors
from gradcli.engine.device.gpu.launches.gather import claim
from gradcli.engine.device.gpu.lines import even_cut
from gradcli.engine.device.gpu.sorting import sort

_PUTS = struct.Struct("4I")
# sizes[0]: the last one stays, or they are joined: added, or in another way.
_REPLACED, _ADDED = 0, 1


@launches("scatter")
def scatter(call: Draft) -> None:
    """X with elements replaced, or joined with what is put there; sizes[0] says how."""
    if call.has(3):
        (_replace if call.size(0) == _REPLACED else _join)(call, call.numel(3), call.numel(1))


def _sizes(call: Draft) -> tuple[int, int, int]:
    (_, n, inner), m = call.tensors[0].shape, call.tensors[1].shape[1]
    return n, m, inner


def _replace(call: Draft, size: int, count: int) -> None:
    """Who writes each index last, then one pass over the result."""
    last = claim(call, count, size, *_sizes(call))
    args = *tensors(0, 2), last, *tensors(3), size
    call.launch("put_last", over(size), *args, family="gather")


@launches("index_add")
def index_add(call: Draft) -> None:
    """X with rows added: their numbers are joined, each with the place that its row has."""
    if call.has(3):
        _join(call, call.numel(3), call.numel(2), rows=True)


def _join(call: Draft, size: int, count: int, *, rows: bool = False) -> None:
    """A copy of x, the places in order, and what is put there joined."""
    call.launch("put_copy", over(size), *tensors(0, 3), size, family="gather")
    if not count:
        return
    keys = call.scratch(8 * count)
    (_, n, inner), m = call.tensors[0].shape, call.tensors[2].shape[1]
    args = *tensors(1), keys, count, n, m, inner, Errors()
    call.launch("row_keys" if rows else "put_keys", over(count), *args, family="gather")
    order = sort(call, keys, 1, count, suffix="i64")
    chunk = even_cut(count)
    chunks = -(-count // chunk)
    way = _ADDED if rows else call.size(0)
    puts, parts = _PUTS.pack(count, chunk, chunks, way), call.scratch(16 * chunks)
    call.launch("put_parts", over(chunks), *tensors(2), *order, *tensors(3), parts, puts)
    call.launch("put_joins", over(chunks), order[0], parts, *tensors(3), puts)
