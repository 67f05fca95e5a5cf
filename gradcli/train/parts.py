"""The parts of a batch: how it is cut, and the tree along which their gradients are added."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from gradcli.engine.distributed.tree import middle
from gradcli.engine.walk import added

if TYPE_CHECKING:
    from gradcli.engine import Tensor
    from gradcli.engine.array import Array


def cut(indices: Tensor, portion: int | None) -> list[Tensor]:
    """A batch in parts of `portion` samples, the last of what is left; None: whole."""
    size = indices.shape[0]
    portion = portion or size
    return [indices[begin : min(begin + portion, size)] for begin in range(0, size, portion)]


class Gradients:
    """Those of the parameters, added up over parts of a batch along one binary tree.

    The tree depends on the number of parts alone, so that any other way of sharing the work adds
    the same numbers in the same order. Of n parts at most log2(n) + 1 sets of gradients are alive.
    """

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self._leaves = [one.leaf for one in parameters if one.leaf is not None]

    def add_up(self, low: int, high: int, backward: Callable[[int], None]) -> None:
        """Put the sum over parts low to high - 1 where there is none.

        `backward(part)` adds a part's gradients to what is there.
        """
        if high - low == 1:
            backward(low)
            return
        half = middle(low, high)
        self.add_up(low, half, backward)
        if high - half == 1:
            backward(half)
            return
        left = self._take()
        self.add_up(half, high, backward)
        for leaf, grad in zip(self._leaves, left, strict=True):
            if grad is not None:
                leaf.grad = grad if leaf.grad is None else added(grad, leaf.grad)

    def _take(self) -> list[Array | None]:
        """The gradients, which are no longer there."""
        grads = [leaf.grad for leaf in self._leaves]
        for leaf in self._leaves:
            leaf.grad = None
        return grads
