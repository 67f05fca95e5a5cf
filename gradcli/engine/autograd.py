"""The graph of what was computed, and the walk back through it. Knows no op by name.

A Node stands for one call of an op. Nodes are numbered as they are made, and every input of a node
is older than the node: going back in falling order of the numbers visits each node after all its
users, without recursion and without counting edges.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from contextlib import ContextDecorator
from contextvars import ContextVar
from itertools import count
from typing import Any

from gradcli.engine import recording as recorders
from gradcli.engine.array import Array, empty, run
from gradcli.engine.device.cpu import Storage
from gradcli.errors import AutogradError

Gradients = Sequence[Array | None]
_numbers = count()
_recording: ContextVar[bool] = ContextVar("recording", default=True)


class Leaf:
    """Where gradients end up: one for each tensor that the user wants a gradient of."""

    __slots__ = ("grad", "number")

    def __init__(self) -> None:
        self.grad: Array | None = None
        self.number = next(_numbers)


class Node:
    """One call of an op: where its inputs came from, and how gradients go back to them.

    `parents` has one entry an input: (node or leaf, which of its outputs), or None where no
    gradient is wanted. `gradient` maps the outputs' gradients to the inputs'.
    """

    __slots__ = ("gradient", "name", "number", "outputs", "parents", "versions")

    def __init__(
        self,
        name: str,
        parents: Sequence[tuple[Node | Leaf, int] | None],
        gradient: Callable[[Gradients], Gradients],
        outputs: int,
        saved: Iterable[Array] = (),
    ) -> None:
        self.name = name
        self.number = next(_numbers)
        self.outputs = outputs
        self.parents = parents
        self.gradient: Callable[[Gradients], Gradients] | None = gradient
        self.versions: list[tuple[Storage, int]] = [(a.storage, a.storage.version) for a in saved]

    def backward(self, grads: Gradients) -> Gradients:
        """Gradients of the inputs, after checking that nothing saved was overwritten."""
        if self.gradient is None:
            raise AutogradError(
                f"{self.name}: its graph was freed by an earlier backward; "
                "pass retain_graph=True to the first one to go back twice"
            )
        if any(storage.version != version for storage, version in self.versions):
            raise AutogradError(
                f"{self.name}: a value kept for its gradient was changed in place since; "
                "change a clone() instead"
            )
        return self.gradient(grads)


def recording() -> bool:
    """True when operations on tensors are remembered for backward."""
    return _recording.get()


class set_grad_enabled(ContextDecorator):  # noqa: N801 -- torch's name
    """Switch remembering on or off inside a `with` block or a decorated function."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_recording.get())
        _recording.set(self.mode)

    def __exit__(self, *_: object) -> None:
        _recording.set(self._before.pop())


class no_grad(set_grad_enabled):  # noqa: N801 -- torch's name
    """Remember nothing: values only, no memory kept for backward.

    Decorates a function with and without brackets.
    """

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """The context, or the function that runs in it."""
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(set_grad_enabled):  # noqa: N801 -- torch's name
    """Remember again, inside a no_grad block."""

    def __init__(self) -> None:
        super().__init__(True)


def added(a: Array | None, b: Array) -> Array:
    """The sum, in new memory: either may be a view that another branch still reads."""
    if a is None:
        return b
    out = empty(a.shape, a.dtype)
    run("add", a, b, out)
    return out


def backward(root: Node | Leaf, output: int, grad: Array, *, retain_graph: bool = False) -> None:
    """Send `grad` back from one output of `root`, and add what arrives at the leaves to theirs."""
    pending: dict[int, tuple[Node | Leaf, list[Array | None]]] = {}
    queue: list[int] = []

    def arrive(node: Node | Leaf, output: int, grad: Array) -> None:
        if node.number not in pending:
            slots: list[Array | None] = [None] * (node.outputs if isinstance(node, Node) else 1)
            pending[node.number] = (node, slots)
            heapq.heappush(queue, -node.number)
        slots = pending[node.number][1]
        slots[output] = added(slots[output], grad)

    arrive(root, output, grad)
    # Storages that a leaf already owns, or that the caller does: a second leaf must not share them.
    owned = {id(grad.storage)}
    while queue:
        node, slots = pending.pop(-heapq.heappop(queue))
        if isinstance(node, Leaf):
            _deposit(node, slots[0], owned)
            continue
        for parent, upstream in zip(node.parents, node.backward(slots), strict=True):
            if parent is not None and upstream is not None:
                arrive(parent[0], parent[1], upstream)
        if not retain_graph:
            node.gradient = None
            node.parents = ()
            node.versions = []


def _deposit(leaf: Leaf, grad: Array | None, owned: set[int]) -> None:
    assert grad is not None
    recorder = recorders.current()
    if recorder is not None:
        recorder.arrived(leaf)
    if leaf.grad is not None:
        leaf.grad = added(leaf.grad, grad)
        return
    if id(grad.storage) in owned or not grad.is_contiguous():
        grad = grad.copy()
    owned.add(id(grad.storage))
    leaf.grad = grad
