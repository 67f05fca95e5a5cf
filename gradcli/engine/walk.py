"""The walk back through the graph: gradients that meet are added and passed on.

Nothing else adds gradients together.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from gradcli.engine import hooks as hooking
from gradcli.engine import observing
from gradcli.engine import recording as recorders
from gradcli.engine.array import Array, empty_beside, fill, run
from gradcli.engine.block import Block
from gradcli.engine.graph import Edge, Gradients, Leaf, Node
from gradcli.errors import AutogradError, NumericsError, ShapeError

_watching: ContextVar[bool] = ContextVar("watching", default=False)


class detect_anomaly(Block):  # noqa: N801 -- torch's name
    """Ways back inside a `with` block name the first op whose gradient has a NaN."""

    variable = _watching

    def __init__(self) -> None:
        super().__init__()


def added(a: Array | None, b: Array) -> Array:
    """The sum, in new memory: either may be a view that another branch still reads."""
    if a is None:
        return b
    out = empty_beside(a)
    run("add", a, b, out)
    return out


def seed(y: Array, gradient: Array | None, name: str = "backward") -> Array:
    """The gradient with which backward from y begins; 1 for a single number without one."""
    if gradient is None:
        if y.numel != 1:
            raise AutogradError(
                f"{name}: shape {y.shape} is not one number; pass a gradient of that shape"
            )
        out = empty_beside(y)
        fill(out, 1)
        return out
    if gradient.shape != y.shape:
        raise ShapeError(f"{name}: gradient of shape {gradient.shape} for a tensor of {y.shape}")
    return gradient if gradient.dtype is y.dtype else gradient.cast(y.dtype)


class Targets:
    """The edges where a backward pass ends; it computes no other gradients.

    Nodes that are not newer than `since` may be ends, but are not passed through.
    """

    def __init__(self, roots: Iterable[Edge], edges: Iterable[Edge], since: int = -1) -> None:
        self.grads: dict[tuple[int, int], Any] = {(o.number, i): None for o, i in edges}
        self._ends = {number for number, _ in self.grads}
        self._passed = self._on_the_way([origin for origin, _ in roots], since)

    def _on_the_way(self, waiting: list[Node | Leaf], since: int) -> set[int]:
        """Numbers of the nodes from whose inputs an end can be reached."""
        oldest = max(since + 1, min(self._ends, default=0))
        nodes: dict[int, Node] = {}
        while waiting:
            node = waiting.pop()
            if isinstance(node, Leaf) or node.number in nodes or node.number < oldest:
                continue
            nodes[node.number] = node
            waiting += [parent[0] for parent in node.parents if parent is not None]
        reach: set[int] = set()
        for number in sorted(nodes):  # inputs before what is made of them
            origins = {parent[0].number for parent in nodes[number].parents if parent is not None}
            if not origins.isdisjoint(self._ends) or not origins.isdisjoint(reach):
                reach.add(number)
        return reach

    def holds(self, number: int) -> bool:
        """True where a gradient is of use."""
        return number in self._ends or number in self._passed

    def take(self, node: Node | Leaf, slots: Sequence[object]) -> bool:
        """Keep what arrived at an end; true if the pass goes on behind it."""
        if node.number in self._ends:
            for output, value in enumerate(slots):
                if (node.number, output) in self.grads:
                    self.grads[node.number, output] = value
        return node.number in self._passed


class Walk:
    """One backward pass: gradients flow from the roots, and each leaf adds up those that arrive.

    Values are Arrays; a CreateGraphWalk does the same with Tensors.
    """

    def __init__(self, *, retain_graph: bool, targets: Targets | None = None) -> None:
        self._retain = retain_graph
        self._targets = targets
        self._pending: dict[int, tuple[Node | Leaf, list[Any]]] = {}
        self._queue: list[int] = []
        # Storages that a leaf already owns, or that the caller does: a second must not share them.
        self._owned: set[int] = set()

    def begin(self, root: Edge, grad: Any) -> None:
        """Send this gradient back from one output of a node."""
        self._owned.add(id(grad.storage))
        self._arrive(root, grad)

    def run(self) -> None:
        """Until everything has arrived."""
        pending, queue = self._pending, self._queue
        through = _watched(self.through) if _watching.get() else self.through
        observer = observing.current()
        if observer is not None:
            through = _observed(through, observer)
        while queue:
            node, slots = pending.pop(-heapq.heappop(queue))
            slots = self.hooked(node, slots)
            if self._targets is not None and not self._targets.take(node, slots):
                continue
            if isinstance(node, Leaf):
                self.deposit(node, slots[0])
                continue
            node.check()
            for parent, grad in zip(node.parents, through(node, slots), strict=True):
                if parent is not None and grad is not None:
                    self._arrive(parent, grad)
            if not self._retain:
                node.free()

    def _arrive(self, edge: Edge, grad: Any) -> None:
        node, output = edge
        number = node.number
        if self._targets is not None and not self._targets.holds(number):
            return
        waiting = self._pending.get(number)
        if waiting is None:
            slots: list[Any] = [None] * (node.outputs if isinstance(node, Node) else 1)
            self._pending[number] = (node, slots)
            heapq.heappush(self._queue, -number)
            slots[output] = grad
        else:
            slots = waiting[1]
            slots[output] = self.add(slots[output], grad)

    def hooked(self, node: Node | Leaf, slots: list[object]) -> list[Any]:
        """The gradients after the hooks; storing them, where that is asked for, comes last."""
        if isinstance(node, Leaf):
            _assume(node)
        if not node.hooks:
            return slots
        slots = hooking.ran(node.hooks, slots)
        self.lend(slots)
        for hook in node.hooks:
            if hook.cell is not None and slots[hook.output] is not None:
                self.accumulate(hook.cell, slots[hook.output])
        return slots

    def deposit(self, leaf: Leaf, grad: object) -> None:
        """Add to a leaf's gradient, and tell whoever waits for that."""
        recorder = recorders.current()
        if recorder is not None:
            recorder.arrived(leaf)
        self.accumulate(leaf, grad)
        for hook in leaf.after:
            hook()

    # What a walk does with its values.

    add = staticmethod(added)

    @staticmethod
    def through(node: Node, grads: Gradients) -> Gradients:
        """Gradients of a node's inputs."""
        return node.rule.backward(grads, node.saved)

    def lend(self, slots: Sequence[Any]) -> None:
        """A hook may have stored these: no leaf must share their memory."""
        self._owned.update(id(grad.storage) for grad in slots if grad is not None)

    def accumulate(self, leaf: Leaf, grad: Any) -> None:
        """Add to a leaf's gradient."""
        if leaf.grad is not None:
            leaf.grad = added(leaf.grad, grad)
        else:
            if id(grad.storage) in self._owned or not grad.is_contiguous():
                grad = grad.copy()
            self._owned.add(id(grad.storage))
            leaf.grad = grad


class CreateGraphWalk(Walk):
    """A backward pass over Tensors, whose ops build a graph (create_graph=True)."""

    def begin(self, root: Edge, grad: Any) -> None:
        """Send this gradient back from one output of a node."""
        self._arrive(root, grad)

    @staticmethod
    def add(a: Any, b: Any) -> Any:
        """The sum, by an op."""
        return b if a is None else a + b

    @staticmethod
    def through(node: Node, grads: Sequence[object]) -> Sequence[Any]:
        """Gradients of a node's inputs, by ops."""
        return node.rule.backward_create_graph(node, grads)

    def lend(self, slots: Sequence[Any]) -> None:
        """What is put into a leaf is new memory in any case."""

    def accumulate(self, leaf: Leaf, grad: Any) -> None:
        """Add to a leaf's gradient, and remember where that came from."""
        before = leaf.history
        if leaf.grad is None:
            grad = grad.clone()
        elif before is not None and before[0] is leaf.grad:
            grad = type(grad)(leaf.grad, node=before[1], output=before[2]) + grad
        else:
            grad = type(grad)(leaf.grad) + grad
        leaf.grad = grad.array
        leaf.history = None if grad.node is None else (grad.array, grad.node, grad.output)


def _assume(leaf: Leaf) -> None:
    """A recorded step has run the hooks of this leaf: it holds for these alone."""
    recorder = recorders.current()
    if recorder is not None:
        recorder.assume(leaf, "hooks")
        recorder.assume(leaf, "after")


def _observed(
    through: Callable[[Node, Any], Any], observer: observing.Observer
) -> Callable[[Node, Any], Any]:
    def observed(node: Node, grads: Sequence[Any]) -> Any:
        with observing.by(None):  # of the ops of its gradient nobody is told
            results = through(node, grads)
        observer.backward(node, [_array(g) for g in grads], [_array(g) for g in results])
        return results

    return observed


def _array(grad: Any) -> Array | None:
    """The Array of a gradient, which is a Tensor with create_graph=True."""
    array: Array | None = getattr(grad, "array", grad)
    return array


def _watched(through: Callable[[Node, Any], Any]) -> Callable[[Node, Any], Any]:
    def watched(node: Node, grads: object) -> Any:
        results = through(node, grads)
        for i, grad in enumerate(results):
            if grad is not None and _has_nan(getattr(grad, "array", grad)):
                error = NumericsError(
                    f"{node.name}: its gradient gave NaN for input {i}, of shape {grad.shape}; "
                    "look at the values that go into it"
                )
                error.of_earlier_op = True
                raise error
        return results

    return watched


def _has_nan(grad: Array) -> bool:
    if not grad.dtype.is_floating_point:
        return False
    recorders.reading()
    grad = grad.cast(grad.dtype.computed)
    numbers: Any = grad.memoryview()
    return any(v != v for v in numbers.cast(grad.dtype.format))
