"""The steps of an exact sum: which bytes go where, and what is added, all along the tree of parts.

*Slices*: each rank receives its 1/N of all nodes, adds, and sends the sum to all others.
That sends the bytes of a ring.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from gradcli.engine.array import Array, empty, run
from gradcli.engine.distributed import tree
from gradcli.engine.distributed.group import Group, Message
from gradcli.engine.distributed.tree import Run

Step = Callable[[], object]
WHAT = "the sum over ranks"
_LINE = 16  # numbers, so that slices begin where lines of the cache do


def steps(group: Group, parts: int, rows: Mapping[Run, Array], out: Array) -> Sequence[Step]:
    """What leaves the sum of all parts in `out`, on every rank.

    Args:
        group: the ranks.
        parts: how many the batch has.
        rows: the sums of this rank's nodes, each (length,), on the CPU; only read.
        out: (length,), on the CPU.
    """
    return slices(group, parts, rows, out)


def stretch(array: Array, low: int, high: int) -> Array:
    """Numbers low, low + 1, ..., high - 1 of a contiguous array, in a row."""
    return array.view((high - low,), (1,), array.offset + low)


def slices(group: Group, parts: int, rows: Mapping[Run, Array], out: Array) -> Sequence[Step]:
    """As `steps`: directly between all ranks."""
    length, own = out.shape[0], group.rank
    width = -(-length // (group.size * _LINE)) * _LINE
    cuts = [Run(min(i * width, length), min((i + 1) * width, length)) for i in range(group.size)]
    others = [rank for rank in range(group.size) if rank != own]
    table = {node: stretch(row, *cuts[own]) for node, row in rows.items()}
    sends, receives = [], []
    for rank, run_ in enumerate(tree.runs(parts, group.size)):
        if rank == own:
            continue
        sends += [
            _message(rank, stretch(row, *cuts[rank]), tag) for tag, row in enumerate(rows.values())
        ]
        for tag, node in enumerate(tree.nodes(parts, run_)):
            table[node] = empty((cuts[own].high - cuts[own].low,), out.dtype)
            receives.append(_message(rank, table[node], tag))
    share = stretch(out, *cuts[own])
    return [
        *_exchange(group, sends, receives),
        *_additions([(Run(0, parts), share)], table),
        *_exchange(
            group,
            [_message(rank, share) for rank in others],
            [_message(rank, stretch(out, *cuts[rank])) for rank in others],
        ),
    ]


def _message(rank: int, array: Array, tag: int = 0) -> Message:
    return Message(rank, array.memoryview(), tag)


def _exchange(group: Group, sends: Sequence[Message], receives: Sequence[Message]) -> list[Step]:
    """The messages that have bytes, as one step; no step where none has."""
    sends, receives = ([one for one in some if one.memory] for some in (sends, receives))
    return [partial(group.exchange, sends, receives, WHAT)] if sends or receives else []


def _additions(targets: Sequence[tuple[Run, Array]], rows: Mapping[Run, Array]) -> list[Step]:
    """One step that leaves sums of nodes in their targets; `rows` cover them all."""
    calls: list[tuple[str, tuple[Array, ...]]] = []
    spare: list[Array] = []

    def added(node: Run, target: Array, depth: int) -> Array:
        """The memory that has the node's sum: a row, or the target."""
        if node in rows:
            return rows[node]
        half = tree.middle(*node)
        left = added(Run(node.low, half), target, depth)
        if depth == len(spare):
            spare.append(empty(target.shape, target.dtype))
        right = added(Run(half, node.high), spare[depth], depth + 1)
        calls.append(("add", (left, right, target)))
        return target

    for node, target in targets:
        if target.numel and added(node, target, 0) is not target:
            calls.append(("copy", (rows[node], target)))
    return [partial(_run, calls)] if calls else []


def _run(calls: Sequence[tuple[str, tuple[Array, ...]]]) -> None:
    for kernel, arrays in calls:
        run(kernel, *arrays)
