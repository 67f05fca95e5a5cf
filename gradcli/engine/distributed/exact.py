"""The steps of an exact sum: which bytes go where, and what is added, all along the tree of parts.

*Slices*: each rank receives its 1/N of all nodes, adds, and sends the sum to all others.
*Halving and doubling*, for small buffers on N = 2^k ranks: at distances 1, 2, 4, ... two ranks
exchange halves of what they have and add; then the sums go back the same way. These are 2k rounds
in place of 2(N - 1) messages. Both send the bytes of a ring.
*Doubling*, for two ranks and for tiny buffers: whole buffers in place of halves. Every rank adds
all of them, so that k rounds are enough. All of these add along the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from gradcli.engine.array import Array, empty, fill, run
from gradcli.engine.distributed import tree
from gradcli.engine.distributed.group import Group, Message
from gradcli.engine.distributed.tree import Run
from gradcli.engine.dtype import DType

Step = Callable[[], object]
WHAT = "the sum over ranks"
SMALL = 4 << 20  # bytes, up to which halving and doubling is chosen
TINY = 64 << 10  # and up to which doubling is
_LINE = 16  # numbers, so that slices begin where lines of the cache do


def steps(group: Group, parts: int, rows: Mapping[Run, Array], out: Array) -> Sequence[Step]:
    """What leaves the sum of all parts in `out`, on every rank.

    Args:
        group: the ranks.
        parts: how many the batch has.
        rows: the sums of this rank's nodes, each (length,), on the CPU; only read.
        out: (length,), on the CPU.
    """
    size, nbytes = group.size, out.numel * out.dtype.size
    if size > 1 and size & (size - 1) == 0 and nbytes <= SMALL:
        whole = size == 2 or nbytes <= TINY
        return (doubling if whole else halving)(group, parts, rows, out)
    return slices(group, parts, rows, out)


def arriving(group: Group, parts: int, out: Array) -> int:
    """Bytes of other ranks' nodes, as far as this one adds them up; small buffers need more."""
    share = width(out.shape[0], group.size)
    runs = (run_ for rank, run_ in enumerate(tree.runs(parts, group.size)) if rank != group.rank)
    return sum(len(tree.nodes(parts, run_)) for run_ in runs) * share * out.dtype.size


def stretch(array: Array, low: int, high: int) -> Array:
    """Numbers low, low + 1, ..., high - 1 of a contiguous array, in a row."""
    return array.view((high - low,), (1,), array.offset + low)


def width(length: int, size: int) -> int:
    """The numbers of the longest slice of a row, for each of `size` ranks."""
    return -(-length // (size * _LINE)) * _LINE


def slices_of(length: int, size: int) -> list[Run]:
    """Which numbers of a row each rank adds up: all the same number of them, but for the last."""
    step = width(length, size)
    return [Run(min(i * step, length), min((i + 1) * step, length)) for i in range(size)]


def slices(group: Group, parts: int, rows: Mapping[Run, Array], out: Array) -> Sequence[Step]:
    """As `steps`: directly between all ranks."""
    length, own = out.shape[0], group.rank
    cuts = slices_of(length, group.size)
    peers = [rank for rank in range(group.size) if rank != own]
    table = {node: stretch(row, *cuts[own]) for node, row in rows.items()}
    sends, receives = [], []
    for rank, run_ in enumerate(tree.runs(parts, group.size)):
        if rank == own:
            continue
        sends += [
            _message(rank, stretch(row, *cuts[rank]), tag) for tag, row in enumerate(rows.values())
        ]
        receives += _receives(rank, tree.nodes(parts, run_), cuts[own], out.dtype, table)
    share = stretch(out, *cuts[own])
    return [
        *_exchange(group, sends, receives),
        *additions({Run(0, parts): share}, table),
        *_exchange(
            group,
            [_message(rank, share) for rank in peers],
            [_message(rank, stretch(out, *cuts[rank])) for rank in peers],
        ),
    ]


def halving(
    group: Group, parts: int, rows: Mapping[Run, Array], out: Array, whole: bool = False
) -> Sequence[Step]:
    """As `steps`, for 2^k ranks: in k rounds to the sums and k rounds back.

    With `whole` nothing is halved, and nothing has to go back.
    """
    there: list[Step] = []
    back: list[Step] = []
    table, low, high = dict(rows), 0, out.shape[0]
    distance = 1
    while distance < group.size:
        partner = group.rank ^ distance
        half = low + (high - low) // 2 // _LINE * _LINE
        keep, give = Run(low, high if whole else half), Run(low if whole else half, high)
        if partner < group.rank:
            keep, give = give, keep
        own, theirs = (_block(parts, group.size, rank, distance) for rank in (group.rank, partner))
        sends = [
            _message(partner, stretch(row, give.low - low, give.high - low), tag)
            for tag, row in enumerate(table.values())
        ]
        for node, row in table.items():
            table[node] = stretch(row, keep.low - low, keep.high - low)
        receives = _receives(partner, tree.nodes(parts, theirs), keep, out.dtype, table)
        there += _exchange(group, sends, receives)
        distance *= 2
        share = stretch(out, *keep)
        both = tree.nodes(parts, Run(min(own.low, theirs.low), max(own.high, theirs.high)))
        if distance == group.size:
            sums = {Run(0, parts): share}
        else:
            sums = {node: empty(share.shape, share.dtype) for node in both if node not in table}
        there += additions(sums, table)
        table = {node: sums[node] if node in sums else table[node] for node in both}
        if not whole:
            rest = stretch(out, *give)
            back += _exchange(group, [_message(partner, share)], [_message(partner, rest)])
        low, high = keep
    return [*there, *reversed(back)]


def doubling(group: Group, parts: int, rows: Mapping[Run, Array], out: Array) -> Sequence[Step]:
    """As `steps`, for 2^k ranks: in k rounds, each with whole rows."""
    return halving(group, parts, rows, out, whole=True)


def _block(parts: int, size: int, rank: int, distance: int) -> Run:
    """The parts of the `distance` ranks among which this one has exchanged so far."""
    runs = tree.runs(parts, size)
    first = rank - rank % distance
    return Run(runs[first].low, runs[first + distance - 1].high)


def _message(rank: int, array: Array, tag: int = 0) -> Message:
    return Message(rank, array.memoryview(), tag)


def _receives(
    rank: int, nodes: Sequence[Run], numbers: Run, dtype: DType, table: dict[Run, Array]
) -> list[Message]:
    """Messages with another rank's nodes, whose memory is entered into the table."""
    for node in nodes:
        table[node] = empty((numbers.high - numbers.low,), dtype)
    return [_message(rank, table[node], tag) for tag, node in enumerate(nodes)]


def _exchange(group: Group, sends: Sequence[Message], receives: Sequence[Message]) -> list[Step]:
    """The messages that have bytes, as one step; no step where none has."""
    sends, receives = (
        [message for message in some if message.memory] for some in (sends, receives)
    )
    return [partial(group.exchange, sends, receives, WHAT)] if sends or receives else []


def additions(targets: Mapping[Run, Array], rows: Mapping[Run, Array]) -> list[Step]:
    """One step that leaves sums of nodes in their targets; `rows` cover them all."""
    calls: list[tuple[str, tuple[Array, ...]]] = []
    spare: list[Array] = []

    def add(node: Run, target: Array, depth: int) -> Array:
        """The memory that has the node's sum: a row, or the target."""
        if node in rows:
            return rows[node]
        half = tree.middle(*node)
        left = add(Run(node.low, half), target, depth)
        if depth == len(spare):
            spare.append(empty(target.shape, target.dtype))
        right = add(Run(half, node.high), spare[depth], depth + 1)
        calls.append(("add", (left, right, target)))
        return target

    for node, target in targets.items():
        if target.numel and add(node, target, 0) is not target:
            calls.append(("copy", (rows[node], target)))
    return [partial(_run, calls)] if calls else []


def _run(calls: Sequence[tuple[str, tuple[Array, ...]]]) -> None:
    for kernel, arrays in calls:
        run(kernel, *arrays)


def accumulate(rows: Sequence[Array], out: Array) -> None:
    """The sum rows[0] + rows[1] + ..., from the left, into `out`."""
    if not rows:
        fill(out, 0.0)
        return
    run("copy", rows[0], out)
    for row in rows[1:]:
        run("add", out, row, out)
