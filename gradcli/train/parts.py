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
    """What a part leaves beside its gradients: its loss, and what running statistics learn."""

    loss: Tensor
    statistics: Sequence[BatchStatistics] = ()


Backward: TypeAlias = Callable[[int], PartResult]  # adds the gradients of a part to what is there


class Gradients:
    """Those of the parameters, added up over parts of a batch along one binary tree.

    The tree depends on the number of parts alone, so that any other way of sharing the work adds
    the same numbers in the same order. Of n parts at most log2(n) + 1 sets of gradients are alive.
    """

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self.parameters = [one for one in parameters if one.requires_grad]

    def add_up(self, low: int, high: int, backward: Backward) -> list[PartResult]:
        """Put the sum over parts low to high - 1 where there is none; what else they leave."""
        if high - low == 1:
            return [backward(low)]
        half = middle(low, high)
        results = self.add_up(low, half, backward)
        if high - half == 1:
            return [*results, backward(half)]
        left = self.take()
        results += self.add_up(half, high, backward)
        for leaf, grad in zip(self._leaves(), left, strict=True):
            if grad is not None:
                leaf.grad = grad if leaf.grad is None else added(grad, leaf.grad)
        return results

    def take(self) -> list[Array | None]:
        """The gradients, which are no longer there."""
        grads = [leaf.grad for leaf in self._leaves()]
        for leaf in self._leaves():
            leaf.grad = None
        return grads

    def _leaves(self) -> list[Leaf]:
        return [one.leaf for one in self.parameters if one.leaf is not None]


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
        """See what a part does; it is made once, and leaves nothing behind."""
        before = default_generator.get_state()
        gradients.take()
        result = backward()
        draws = default_generator.get_state()[2] - before[2]
        default_generator.set_state(*before)
        grads = zip(gradients.parameters, gradients.take(), strict=True)
        parameters = [one for one, grad in grads if grad is not None]
        return cls(draws, parameters, tuple(one.layer for one in result.statistics))


class Shares:
    """The sums over a batch whose parts ranks share: gradients, and what else its parts leave.

    A rank adds up the nodes of the tree that lie whole in its parts, each in a row of one flat
    buffer. Behind the gradients each part has places for its loss and statistics, which are 0 in
    all rows but one: their sum gathers them.
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
        """Put the sum over all parts, and make those of this rank; what all of them leave."""
        if parts not in self._buffers:
            with recording.to(None):  # memory that outlives a step which is being recorded
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
        from gradcli.engine.distributed.gpus import way  # whoever is alone does not wait for them
        from gradcli.engine.distributed.sum import Sum

        self._outline = outline
        vectors = [(one.num_features,) for one in outline.norms for _ in range(2)]
        self._shapes = [one.shape for one in outline.parameters]
        self._shapes += [(), *vectors] * parts
        length = sum(map(shape.numel, self._shapes))
        device = outline.parameters[0].device
        gpus = way(group, device).gpus
        self.sum = Sum(parts, length, how=how, group=group, device=device, gpus=gpus)
        fill(self.sum.source.array, 0)
        rows = range(len(self.sum.nodes))
        self._rows = [self._places(self.sum.source.array, row * length) for row in rows]
        self._out = self._places(self.sum.out.array, 0)

    def _places(self, memory: Array, offset: int) -> list[Array]:
        """A row as the tensors of which it is made."""
        places = []
        for sizes in self._shapes:
            places.append(memory.view(sizes, shape.contiguous_strides(sizes), offset))
            offset += shape.numel(sizes)
        return places

    def _behind(self, row: list[Array]) -> list[list[Array]]:
        """The places of each part: of its loss, and of a mean and a variance for each layer."""
        first, step = len(self._outline.parameters), 1 + 2 * len(self._outline.norms)
        return [row[i : i + step] for i in range(first, len(row), step)]

    def write(
        self, row: int, first: int, grads: Iterable[Array | None], results: list[PartResult]
    ) -> None:
        """The sum of the gradients of parts `first`, `first` + 1, ..., and what they leave."""
        places = self._rows[row]
        for place, grad in zip(places, grads, strict=False):
            if grad is None:
                fill(place, 0)
            else:
                copy_into(place, grad)
        for part, one in enumerate(results, first):
            norms = tuple(norm.layer for norm in one.statistics)
            assert norms == self._outline.norms, "all parts call the same layers"
            values = [one.loss, *chain(*((norm.mean, norm.var) for norm in one.statistics))]
            for place, value in zip(self._behind(places)[part], values, strict=True):
                copy_into(place, value.array)

    def read(self) -> list[PartResult]:
        """Give the weights their gradients, views of the sum; what all parts leave."""
        recorder = recording.current()
        for parameter, place in zip(self._outline.parameters, self._out, strict=False):
            parameter.grad = Tensor(place)
            if recorder is not None and parameter.leaf is not None:
                recorder.arrived(parameter.leaf)  # where it lies, also where no part was made
        return [
            PartResult(loss, list(map(BatchStatistics, self._outline.norms, rest[::2], rest[1::2])))
            for loss, *rest in (map(Tensor, places) for places in self._behind(self._out))
        ]
