"""Sum: rows of all ranks, added along the tree of parts: the bits of any number of ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from gradcli.engine import outside
from gradcli.engine.array import Array, empty
from gradcli.engine.device import scope
from gradcli.engine.distributed import exact, tree
from gradcli.engine.distributed.exact import Step
from gradcli.engine.distributed.group import Group
from gradcli.engine.dtype import DType, bfloat16, float32
from gradcli.engine.ops.creation.creation import empty as new
from gradcli.errors import DTypeError

if TYPE_CHECKING:  # who adds on the host does not wait for these
    from gradcli.engine.distributed.gpu_sum import GPUSum, LibrarySum
    from gradcli.engine.distributed.nccl import Communicator

How = Literal["exact", "library"]


class Sum:
    """out = the sum over all parts of a batch, with equal bits on every rank.

    Exact is the sum along the tree of parts (see tree.py), whatever the number of ranks is.
    "library" adds up a rank's own nodes and hands that to MPI's all-reduce, in whose order the
    bits depend on the ranks.

    Attributes:
        nodes: those of the tree that lie whole in this rank's run of parts; it adds them up itself.
        source: a row for each of them, (nodes, length); what `sum` reads.
        out: (length,); what `sum` writes.
        count: sums so far, as far as the host makes them.
    """

    def __init__(
        self,
        parts: int,
        length: int,
        dtype: DType = float32,
        how: How = "exact",
        *,
        group: Group,
        device: str = "cpu",
        gpus: Communicator | None = None,
    ) -> None:
        """Make the memory, which holds nothing yet.

        Args:
            parts: how many the batch has, on all ranks together.
            length: numbers in a row.
            dtype: their type.
            how: "exact" or "library".
            group: the ranks.
            device: where the memory lies.
            gpus: of the ranks, to exchange between; without them the rows come to the host.

        Raises:
            DTypeError: the library has no such type.
        """
        if how == "library" and dtype is bfloat16:
            raise DTypeError("Sum: MPI has no bfloat16; add exactly, or in float32")
        self.nodes = tree.nodes(parts, tree.runs(parts, group.size)[group.rank])
        self.count = 0
        self._group, self._parts, self._how = group, parts, how
        self._steps: Sequence[Step] | None = None
        self.source = new(len(self.nodes), length, dtype=dtype, device=device)
        self._on_gpus: GPUSum | LibrarySum | None = None
        if gpus is None:
            self.out = new(length, dtype=dtype, device=device)
            return
        from gradcli.engine.distributed.gpu_sum import GPUSum, LibrarySum

        if how == "exact":
            self._on_gpus = GPUSum(gpus, group, parts, self.source)
        else:
            self._on_gpus = LibrarySum(gpus, self.source)
        self.out = self._on_gpus.out

    @property
    def arriving(self) -> int:
        """Bytes of the rows of other ranks that are here at once, where the host adds them."""
        if self._on_gpus is not None or self._how != "exact":
            return 0
        return exact.arriving(self._group, self._parts, self.out.array)

    def sum(self) -> None:
        """Add; all ranks have to. In a captured step no other call passes it.

        Raises:
            LostRankError: E806, a rank did not come within the group's timeout.
        """
        if self._on_gpus is None:
            outside.call(self._sum, [self.source], [self.out])
        else:
            self._on_gpus.sum()

    def _sum(self) -> None:
        if self._steps is None:
            self._steps = self._plan()
        self.count += 1
        for step in self._steps:
            step()

    def _plan(self) -> Sequence[Step]:
        with scope.on(None):
            return self._between(outside.host(self.source).array, outside.host(self.out).array)

    def _between(self, source: Array, out: Array) -> Sequence[Step]:
        """The steps from rows to their sum, both on the CPU."""
        length = out.shape[0]
        rows = {
            node: exact.stretch(source, i * length, (i + 1) * length)
            for i, node in enumerate(self.nodes)
        }
        if self._how == "exact":
            return exact.steps(self._group, self._parts, rows, out)
        if len(rows) == 1:
            (row,) = rows.values()
            return [self._reduction(row, out)]
        own = empty(out.shape, out.dtype)
        return [lambda: exact.accumulate(list(rows.values()), own), self._reduction(own, out)]

    def _reduction(self, own: Array, out: Array) -> Callable[[], None]:
        source, target, name = own.memoryview(), out.memoryview(), out.dtype.name
        return lambda: self._group.all_reduce(source, target, name, exact.WHAT)
