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
from typing import Any, Protocol

from gradcli.engine import recording as recorders
from gradcli.engine.array import Array, empty, full, run
from gradcli.engine.device.cpu import Storage
from gradcli.errors import AutogradError, NumericsError, ShapeError

Gradients = Sequence[Array | None]
_numbers = count()
_recording: ContextVar[bool] = ContextVar("recording", default=True)
_watching: ContextVar[bool] = ContextVar("watching", default=False)


class Rule(Protocol):
    """How gradients go back through a node: one an op, or one of a function of the user's."""

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    def backward(self, grads: Gradients, kept: Any) -> Gradients:
        """Gradients of the inputs from those of the outputs and what the node kept."""
        ...

    def backward_recorded(self, node: Node, grads: Sequence[Any]) -> Sequence[Any]:
        """The same with Tensors, by ops that are remembered for another way back."""
        ...


class Leaf:
    """Where gradients end up: one for each tensor that the user wants a gradient of.

    Attributes:
        grad: what has arrived so far.
        history: where `grad` came from, if it was made for a second way back: (grad, node, output).
        hooks: called with a gradient before it is added.
        after: called when it was.
    """

    __slots__ = ("after", "grad", "history", "hooks", "number")

    def __init__(self) -> None:
        self.grad: Array | None = None
        self.history: tuple[Array, Node | Leaf, int] | None = None
        self.hooks: Hooks | None = None
        self.after: dict[int, Callable[[], None]] | None = None
        self.number = next(_numbers)


class Node:
    """One call of an op: where its inputs came from, and how gradients go back to them.

    `parents` has one entry an input: (node or leaf, which of its outputs), or None where no
    gradient is wanted. `kept` is what the rule needs, and None once the graph is freed.
    """

    __slots__ = ("hooks", "kept", "number", "options", "outputs", "parents", "rule", "versions")

    def __init__(
        self,
        rule: Rule,
        parents: Sequence[Edge | None],
        kept: Any,
        outputs: int,
        saved: Iterable[Array] = (),
        options: dict[str, Any] | None = None,
    ) -> None:
        self.rule = rule
        self.number = next(_numbers)
        self.outputs = outputs
        self.parents = parents
        self.kept = kept
        self.options = options
        self.hooks: Hooks | None = None
        self.versions: list[tuple[Storage, int]] = [(a.storage, a.storage.version) for a in saved]

    @property
    def name(self) -> str:
        """The op's name."""
        return self.rule.name

    def check(self) -> None:
        """Refuse to go back through what was freed or overwritten."""
        if self.kept is None:
            raise AutogradError(
                f"{self.name}: its graph was freed by an earlier backward; "
                "pass retain_graph=True to the first one to go back twice"
            )
        if any(storage.version != version for storage, version in self.versions):
            raise AutogradError(
                f"{self.name}: a value kept for its gradient was changed in place since; "
                "change a clone() instead"
            )

    def free(self) -> None:
        """Let go of what was kept, and of the graph behind."""
        self.kept = self.options = self.hooks = None
        self.parents = ()
        self.versions = []


Edge = tuple[Node | Leaf, int]
# By order of registration: which output, what is called, and whether it only looks, after others.
Hooks = dict[int, tuple[int, Callable[[Any], Any], bool]]


def now() -> int:
    """A number between those of the nodes made so far and those to come."""
    return next(_numbers)


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


class detect_anomaly(ContextDecorator):  # noqa: N801 -- torch's name
    """Ways back inside a `with` block name the first op whose gradient has a NaN."""

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_watching.get())
        _watching.set(True)

    def __exit__(self, *_: object) -> None:
        _watching.set(self._before.pop())


def added(a: Array | None, b: Array) -> Array:
    """The sum, in new memory: either may be a view that another branch still reads."""
    if a is None:
        return b
    out = empty(a.shape, a.dtype)
    run("add", a, b, out)
    return out


def seed(y: Array, gradient: Array | None, name: str = "backward") -> Array:
    """The gradient with which a way back from y begins: 1 for one number, where none is given."""
    if gradient is None:
        if y.numel != 1:
            raise AutogradError(
                f"{name}: shape {y.shape} is not one number; pass a gradient of that shape"
            )
        return full(y.shape, 1, y.dtype)
    if gradient.shape != y.shape:
        raise ShapeError(f"{name}: gradient of shape {gradient.shape} for a tensor of {y.shape}")
    return gradient.cast(y.dtype)


class Wanted:
    """The places at which a way back is to end, beside which it leaves everything alone.

    Nodes that are not newer than `since` are places to end at, but none to pass through.
    """

    def __init__(self, roots: Iterable[Edge], places: Iterable[Edge], since: int = -1) -> None:
        self.found: dict[tuple[int, int], Any] = {(o.number, i): None for o, i in places}
        self._ends = {number for number, _ in self.found}
        self._passed = self._on_the_way([origin for origin, _ in roots], since)

    def _on_the_way(self, waiting: list[Node | Leaf], since: int) -> set[int]:
        """Numbers of the nodes from whose inputs a place can be reached."""
        oldest = max(since + 1, min(self._ends, default=0))
        seen: dict[int, Node] = {}
        while waiting:
            node = waiting.pop()
            if isinstance(node, Leaf) or node.number in seen or node.number < oldest:
                continue
            seen[node.number] = node
            waiting += [parent[0] for parent in node.parents if parent is not None]
        reach: set[int] = set()
        for number in sorted(seen):  # inputs before what is made of them
            origins = {parent[0].number for parent in seen[number].parents if parent is not None}
            if not origins.isdisjoint(self._ends) or not origins.isdisjoint(reach):
                reach.add(number)
        return reach

    def holds(self, number: int) -> bool:
        """True where a gradient is of use."""
        return number in self._ends or number in self._passed

    def take(self, node: Node | Leaf, slots: Sequence[Any]) -> bool:
        """Keep what has arrived at a place; true if the way goes on behind it."""
        if node.number in self._ends:
            for output, value in enumerate(slots):
                if (node.number, output) in self.found:
                    self.found[node.number, output] = value
        return node.number in self._passed


class Walk:
    """One way back: gradients go from the roots on, and what arrives at a leaf is added to its own.

    Values are Arrays; a RecordedWalk goes the same way with Tensors.
    """

    def __init__(self, *, retain_graph: bool, wanted: Wanted | None = None) -> None:
        self._retain = retain_graph
        self._wanted = wanted
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
        while queue:
            node, slots = pending.pop(-heapq.heappop(queue))
            if node.hooks:
                slots = _hooked(node.hooks, slots)
            if self._wanted is not None and not self._wanted.take(node, slots):
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
        if self._wanted is not None and not self._wanted.holds(number):
            return
        if number not in self._pending:
            slots: list[Any] = [None] * (node.outputs if isinstance(node, Node) else 1)
            self._pending[number] = (node, slots)
            heapq.heappush(self._queue, -number)
        slots = self._pending[number][1]
        slots[output] = self.add(slots[output], grad)

    # What a walk does with its values.

    add = staticmethod(added)

    @staticmethod
    def through(node: Node, grads: Gradients) -> Gradients:
        """Gradients of a node's inputs."""
        return node.rule.backward(grads, node.kept)

    def deposit(self, leaf: Leaf, grad: Array) -> None:
        """Add to a leaf's gradient."""
        _tell(leaf)
        if leaf.grad is not None:
            leaf.grad = added(leaf.grad, grad)
        else:
            if id(grad.storage) in self._owned or not grad.is_contiguous():
                grad = grad.copy()
            self._owned.add(id(grad.storage))
            leaf.grad = grad
        for hook in tuple((leaf.after or {}).values()):
            hook()


class RecordedWalk(Walk):
    """A way back whose values are Tensors, and whose steps are remembered."""

    def begin(self, root: Edge, grad: Any) -> None:
        """Send this gradient back from one output of a node."""
        self._arrive(root, grad)

    @staticmethod
    def add(a: Any, b: Any) -> Any:
        """The sum, by an op."""
        return b if a is None else a + b

    @staticmethod
    def through(node: Node, grads: Sequence[Any]) -> Sequence[Any]:
        """Gradients of a node's inputs, by ops."""
        return node.rule.backward_recorded(node, grads)

    def deposit(self, leaf: Leaf, grad: Any) -> None:
        """Add to a leaf's gradient, and remember where that came from."""
        _tell(leaf)
        before = leaf.history
        if leaf.grad is None:
            grad = grad.clone()
        elif before is not None and before[0] is leaf.grad:
            grad = type(grad)(leaf.grad, node=before[1], output=before[2]) + grad
        else:
            grad = type(grad)(leaf.grad) + grad
        leaf.grad = grad.array
        leaf.history = None if grad.node is None else (grad.array, grad.node, grad.output)
        for hook in tuple((leaf.after or {}).values()):
            hook()


def _tell(leaf: Leaf) -> None:
    recorder = recorders.current()
    if recorder is not None:
        recorder.arrived(leaf)


def _hooked(hooks: Hooks, slots: list[Any]) -> list[Any]:
    """What hooks make of the gradients; those that only look come last."""
    for output, hook, looks in sorted(hooks.values(), key=lambda entry: entry[2]):
        if slots[output] is not None:
            made = hook(slots[output])
            slots[output] = slots[output] if looks else made
    return slots


def _watched(through: Callable[[Node, Any], Any]) -> Callable[[Node, Any], Any]:
    def watched(node: Node, grads: Any) -> Any:
        made = through(node, grads)
        for i, grad in enumerate(made):
            if grad is not None and _has_nan(getattr(grad, "array", grad)):
                raise NumericsError(
                    f"{node.name}: its gradient gave NaN for input {i}, of shape {grad.shape}; "
                    "look at the values that go into it"
                )
        return made

    return watched


def _has_nan(grad: Array) -> bool:
    if not grad.dtype.is_floating_point:
        return False
    recorders.reading()
    numbers: Any = grad.contiguous().memoryview()
    return any(v != v for v in numbers.cast(grad.dtype.format))
