"""The sum over ranks between their GPUs: messages and additions are queued, and none waits."""

from __future__ import annotations

from gradcli.engine import outside
from gradcli.engine.device import scope
from gradcli.engine.distributed import exact, tree
from gradcli.engine.distributed.group import Group
from gradcli.engine.distributed.nccl import Communicator, Piece
from gradcli.engine.distributed.tree import Run
from gradcli.engine.ops.creation.creation import empty as new
from gradcli.engine.ops.creation.creation import zeros
from gradcli.engine.tensor import Tensor


class GPUSum:
    """Each rank receives its 1/N of all nodes, adds along the tree, and the sums are gathered.

    Attributes:
        out: (length,), the sum.
    """

    def __init__(self, gpus: Communicator, group: Group, parts: int, source: Tensor) -> None:
        """Memory and messages of a sum over (nodes, length), of which the ranks have rows each."""
        length = source.shape[1]
        width = exact.width(length, group.size)
        cuts = exact.slices_of(length, group.size)
        mine = cuts[group.rank]
        peers = [rank for rank in range(group.size) if rank != group.rank]
        runs = tree.runs(parts, group.size)
        theirs = [(rank, node) for rank in peers for node in tree.nodes(parts, runs[rank])]
        many, device = mine.high - mine.low, source.device
        self._source = source
        self._received = new(len(theirs) * many, dtype=source.dtype, device=device)
        self._whole = zeros(width * group.size, dtype=source.dtype, device=device)
        self.out = self._whole[:length]
        table, sends = {}, []
        for i, node in enumerate(tree.nodes(parts, runs[group.rank])):
            row = exact.stretch(source.array, i * length, (i + 1) * length)
            table[node] = exact.stretch(row, *mine)
            sends += [Piece(rank, exact.stretch(row, *cuts[rank])) for rank in peers]
        receives = []
        for i, (rank, node) in enumerate(theirs):
            table[node] = exact.stretch(self._received.array, i * many, (i + 1) * many)
            receives.append(Piece(rank, table[node]))
        begin = group.rank * width
        share = exact.stretch(self._whole.array, begin, begin + many)
        with scope.on(source.array.storage.device):
            self._additions = exact.additions({Run(0, parts): share}, table)
        self._exchange = gpus.exchange(sends, receives)
        whole = self._whole.array
        self._gather = gpus.all_gather(exact.stretch(whole, begin, begin + width), whole)

    def sum(self) -> None:
        """Queue it; all ranks have to."""
        outside.queue(self._exchange, [self._source], [self._received])
        for step in self._additions:
            step()
        outside.queue(self._gather, [self._whole], [self._whole])


class LibrarySum:
    """The sum of a rank's own nodes, added to those of the others by NCCL's all-reduce.

    Attributes:
        out: (length,), the sum, whose bits depend on the ranks.
    """

    def __init__(self, gpus: Communicator, source: Tensor) -> None:
        """Memory for rows (nodes, length)."""
        count, n = source.shape
        self._rows = [exact.stretch(source.array, i * n, (i + 1) * n) for i in range(count)]
        self._own, self.out = (zeros(n, dtype=source.dtype, device=source.device) for _ in range(2))
        self._reduce = gpus.all_reduce(self._own.array, self.out.array)

    def sum(self) -> None:
        """Queue it; all ranks have to."""
        exact.accumulate(self._rows, self._own.array)
        outside.queue(self._reduce, [self._own], [self.out])
