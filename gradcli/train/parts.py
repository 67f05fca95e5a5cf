"""The parts of a batch: how it is cut, and the tree along which their gradients are added."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from gradcli.dataclass import dataclass
from gradcli.engine import Tensor, recording, shape
from gradcli.engine.array import Array, copy_into, fill
from gradcli.engine.distributed.tree import middle, runs
from gradcli.engine.nn.batch_norm import BatchStatistics, RunningNorm
from gradcli.engine.random import default_generator
from gradcli.engine.walk import added

if TYPE_CHECKING:
    from gradcli.engine.distributed import Group
    from gradcli.engine.distributed.sum import How
    from gradcli.engine.graph import Leaf


def cut(indices: Tensor, portion: int | None) -> list[Tensor]:
    """A batch in parts of `portion` samples, the last of what is left; None: whole."""
    size = indices.shape[0]
    portion = portion or size
    return [indices[begin : min(begin + portion, size)] for begin in range(0, size, portion)]


@dataclass(frozen=True)
class PartResult:
    """The results of a part beside its gradients: its loss, and its batch statistics."""

    loss: Tensor
    statistics: Sequence[BatchStatistics] = ()


Backward: TypeAlias = Callable[[int], PartResult]  # adds the gradients of a part to what is there


class Gradients:
    """The gradients of the parameters, summed over parts of a batch along one binary tree.

    The tree depends on the number of parts alone, so that any other way of sharing the work adds
    the same numbers in the same order. Of n parts at most log2(n) + 1 sets of gradients are alive.
    """

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self.parameters = [parameter for parameter in parameters if parameter.requires_grad]

    def add_up(self, low: int, high: int, backward: Backward) -> list[PartResult]:
        """Leave the sum over parts low to high - 1 in the leaves; returns the parts' results."""
        if high - low == 1:
            return [backward(low)]
        half = middle(low, high)
        results = self.add_up(low, half, backward)
        if high - half == 1:
            return [*results, backward(half)]
        first_half = self.take()
        results += self.add_up(half, high, backward)
        for leaf, grad in zip(self._leaves(), first_half, strict=True):
            if grad is not None:
                leaf.grad = grad if leaf.grad is None else added(grad, leaf.grad)
        return results

    def take(self) -> list[Array | None]:
        """Take the gradients away from the leaves."""
        grads = [leaf.grad for leaf in self._leaves()]
        for leaf in self._leaves():
            leaf.grad = None
        return grads

    def _leaves(self) -> list[Leaf]:
        return [parameter.leaf for parameter in self.parameters if parameter.leaf is not None]


@dataclass(frozen=True)
class Outline:
    """What all parts of a job have in common.

    Attributes:
        draws: how many random draws a part makes.
        parameters: those that get a gradient.
        norms: the layers whose running statistics learn of a part, in the order of their calls.
    """

    draws: int
    parameters: Sequence[Tensor]
    norms: tuple[RunningNorm, ...]

    @classmethod
    def of(cls, gradients: Gradients, backward: Callable[[], PartResult]) -> Outline:
        """Compute one part to learn its outline; drops its gradients and random draws."""
        before = default_generator.get_state()
        gradients.take()
        result = backward()
        draws = default_generator.get_state()[2] - before[2]
        default_generator.set_state(*before)
        grads = zip(gradients.parameters, gradients.take(), strict=True)
        parameters = [parameter for parameter, grad in grads if grad is not None]
        return cls(draws, parameters, tuple(note.layer for note in result.statistics))


class Shares:
    """Sums gradients and results over a batch whose parts the ranks share.

    A rank sums each node of the tree that contains only its own parts, in a row of one flat buffer.
    After the gradients each part has places for its loss and statistics, which are 0 in all rows
    but one, so that the sum gathers them.
    """

    def __init__(self, outline: Outline, group: Group, how: How = "exact") -> None:
        self._gradients = Gradients(outline.parameters)
        self._outline = outline
        self._group = group
        self._how = how
        self._buffers: dict[int, _Buffer] = {}

    @property
    def arriving(self) -> int:
        """Bytes that a sum needs for rows of other ranks."""
        return sum(buffer.sum.arriving for buffer in self._buffers.values())

    def first_draw(self, parts: int) -> int:
        """The number at which this rank's draws of a batch begin."""
        return runs(parts, self._group.size)[self._group.rank].low * self._outline.draws

    def add_up(self, parts: int, backward: Backward) -> list[PartResult]:
        """Compute this rank's parts and leave the sum over all parts; returns all results."""
        if parts not in self._buffers:
            with recording.to(None):  # its memory outlives the step that is recorded
                self._buffers[parts] = _Buffer(self._outline, parts, self._group, self._how)
        buffer = self._buffers[parts]
        for row, node in enumerate(buffer.sum.nodes):
            results = self._gradients.add_up(*node, backward)
            buffer.write(row, node.low, self._gradients.take(), results)
        buffer.sum.sum()
        return buffer.read()


class _Buffer:
    """The flat buffer for one number of parts."""

    def __init__(self, outline: Outline, parts: int, group: Group, how: How) -> None:
        from gradcli.engine.distributed.gpus import way  # not needed by one rank
        from gradcli.engine.distributed.sum import Sum

        self._outline = outline
        vectors = [(norm.num_features,) for norm in outline.norms for _ in range(2)]
        self._shapes = [parameter.shape for parameter in outline.parameters]
        self._shapes += [(), *vectors] * parts
        length = sum(map(shape.numel, self._shapes))
        device = outline.parameters[0].device
        gpus = way(group, device).gpus
        self.sum = Sum(parts, length, how=how, group=group, device=device, gpus=gpus)
        fill(self.sum.source.array, 0)
        rows = range(len(self.sum.nodes))
        self._rows = [self._views(self.sum.source.array, row * length) for row in rows]
        self._out = self._views(self.sum.out.array, 0)

    def _views(self, memory: Array, offset: int) -> list[Array]:
        """The tensors that make up a row."""
        views = []
        for sizes in self._shapes:
            views.append(memory.view(sizes, shape.contiguous_strides(sizes), offset))
            offset += shape.numel(sizes)
        return views

    def _behind(self, row: list[Array]) -> list[list[Array]]:
        """The places of each part: its loss, then a mean and a variance for each layer."""
        first, step = len(self._outline.parameters), 1 + 2 * len(self._outline.norms)
        return [row[i : i + step] for i in range(first, len(row), step)]

    def write(
        self, row: int, first: int, grads: Iterable[Array | None], results: list[PartResult]
    ) -> None:
        """Write the summed gradients of the parts from `first` on, and their results."""
        views = self._rows[row]
        for view, grad in zip(views, grads, strict=False):
            if grad is None:
                fill(view, 0)
            else:
                copy_into(view, grad)
        for part, result in enumerate(results, first):
            norms = tuple(note.layer for note in result.statistics)
            assert norms == self._outline.norms, "all parts call the same layers"
            values = [result.loss, *chain(*((note.mean, note.var) for note in result.statistics))]
            for view, value in zip(self._behind(views)[part], values, strict=True):
                copy_into(view, value.array)

    def read(self) -> list[PartResult]:
        """Set the parameters' gradients to views of the sum; returns all parts' results."""
        recorder = recording.current()
        for parameter, view in zip(self._outline.parameters, self._out, strict=False):
            parameter.grad = Tensor(view)
            if recorder is not None and parameter.leaf is not None:
                recorder.arrived(parameter.leaf)  # its address, even if this rank computed no part
        return [
            PartResult(loss, list(map(BatchStatistics, self._outline.norms, rest[::2], rest[1::2])))
            for loss, *rest in (map(Tensor, views) for views in self._behind(self._out))
        ]
