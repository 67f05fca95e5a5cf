"""PartGradients: sums the gradients of an update's parts along a tree, once over all ranks."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli import engine
from gradcli.engine import Tensor
from gradcli.engine.distributed import tree
from gradcli.engine.distributed.group import Group
from gradcli.engine.distributed.sum import Sum
from gradcli.engine.walk import added
from gradcli.errors import OptionError

Gradients = list[Tensor | None]


class PartGradients:
    """Collects the gradients that each part of this rank leaves in `.grad`, and sums them.

    Part 0 to parts - 1 are the micro-batches of all ranks, those of rank 0 first. Between parts
    `.grad` is None, so that an optimizer's step changes nothing; after the last one it is the sum
    of all parts, on every rank, added to what it was before the first.

    Args:
        parameters: leaves of one element type, the same on every rank.
        parts: of an update; a multiple of the number of ranks.
        group: the ranks.
    """

    def __init__(self, parameters: Sequence[Tensor], parts: int, group: Group) -> None:
        self.parameters = list(parameters)
        self._parts = parts
        self._group = group
        self._run = tree.runs(parts, group.size)[group.rank]
        self._nodes = tree.nodes(parts, self._run)
        self._sum = self._sum_of_ranks() if group.size > 1 else None
        self._before: Gradients = []
        self._losses: list[float] = []
        self._whole: list[Gradients] = []  # of this rank's nodes, as far as they are whole
        self._halves: list[tuple[int, Gradients]] = []  # of the node that is not: parts, gradients

    def _sum_of_ranks(self) -> Sum:
        """The sum over ranks; a row holds a node's gradients, which are present, and its losses."""
        types = sorted({p.dtype.name for p in self.parameters})
        if len(types) != 1:
            raise OptionError(
                f"Accelerator: parameters of {' and '.join(types) or 'no type'}: over several "
                "ranks all that are trained must have one element type"
            )
        self._ends = [0]
        for p in self.parameters:
            self._ends.append(self._ends[-1] + p.numel())
        first = self.parameters[0]
        length = self._ends[-1] + len(self.parameters) + self._parts
        return Sum(self._parts, length, first.dtype, group=self._group, device=first.device)

    @property
    def pending(self) -> int:
        """How many parts of the current update this rank has computed."""
        return len(self._losses)

    def begin(self) -> None:
        """Clear `.grad` before a part's backward."""
        if not self.pending:
            self._before = [p.grad for p in self.parameters]
            if self._sum is not None:  # they may lie where the next sum goes
                self._before = [g if g is None else g.detach().clone() for g in self._before]
        self._leave([None] * len(self.parameters))

    def take(self, loss: float) -> list[float]:
        """Collect `.grad` after a part's backward; after the last part, returns all losses."""
        self._losses.append(loss)
        self._halves.append((1, [p.grad for p in self.parameters]))
        self._leave([None] * len(self.parameters))
        node = self._nodes[len(self._whole)]
        whole = self._run.low + self.pending == node.high
        while len(self._halves) > 1 and (whole or self._halves[-2][0] == self._halves[-1][0]):
            count, right = self._halves.pop()
            before, left = self._halves.pop()
            self._halves.append((before + count, _sums(left, right)))
        if whole:
            self._whole.append(self._halves.pop()[1])
        if self.pending < self._run.high - self._run.low:
            return []
        return self._finish()

    def drop(self) -> None:
        """Drop the parts of an incomplete update."""
        self._losses, self._whole, self._halves = [], [], []
        self.undo()

    def undo(self) -> None:
        """Restore `.grad` to its value before the latest update."""
        self._leave(self._before)

    def _finish(self) -> list[float]:
        """Leave the sum of all parts in `.grad`; returns their losses."""
        total, losses = self._whole[0], self._losses
        if self._sum is not None:
            total, losses = self._over_ranks(self._sum)
        self._losses, self._whole = [], []
        self._leave(_sums(self._before, total))
        return losses

    def _over_ranks(self, ranks: Sum) -> tuple[Gradients, list[float]]:
        """The gradients of all ranks and the losses of all parts, by one exchange."""
        last = self._ends[-1]
        with engine.no_grad():
            for i, (node, gradients) in enumerate(zip(self._nodes, self._whole, strict=True)):
                row = ranks.source[i]
                for begin, end, gradient in zip(
                    self._ends, self._ends[1:], gradients, strict=False
                ):
                    if gradient is None:
                        row[begin:end].zero_()
                    else:
                        row[begin:end].copy_(gradient.reshape(-1))
                row[last:].copy_(self._tail(node, gradients))
        ranks.sum()
        tail = ranks.out[last:].tolist()
        present, losses = tail[: len(self.parameters)], tail[len(self.parameters) :]
        pieces = zip(self.parameters, present, self._ends, self._ends[1:], strict=False)
        gradients = [
            ranks.out[begin:end].reshape(p.shape) if is_present else None
            for p, is_present, begin, end in pieces
        ]
        return gradients, losses

    def _tail(self, node: tree.Run, gradients: Gradients) -> Tensor:
        """The values after a node's gradients: 1 for each that is there, and its parts' losses."""
        losses = [0.0] * self._parts
        own = slice(node.low - self._run.low, node.high - self._run.low)
        losses[node.low : node.high] = self._losses[own]
        present = [float(gradient is not None) for gradient in gradients]
        return engine.tensor(present + losses, dtype=self.parameters[0].dtype)

    def _leave(self, gradients: Gradients) -> None:
        for p, gradient in zip(self.parameters, gradients, strict=True):
            p.grad = gradient


def _sums(lefts: Gradients, rights: Gradients) -> Gradients:
    return [_sum(left, right) for left, right in zip(lefts, rights, strict=True)]


def _sum(left: Tensor | None, right: Tensor | None) -> Tensor | None:
    """The sum in new memory, for gradients may share theirs; None counts as nothing."""
    if left is None or right is None:
        return right if left is None else left
    return Tensor(added(left.array, right.array))
