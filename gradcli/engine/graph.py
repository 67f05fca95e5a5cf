"""The graph of what was computed, for the walk back (walk.py). Knows no op by name.

A Node stands for one call of an op. Nodes are numbered as they are made, and every input of a node
is older than the node: going back in falling order of the numbers visits each node after all its
users, without recursion and without counting edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from itertools import count
from typing import Any, Protocol

from gradcli.engine.array import Array, fill
from gradcli.engine.block import Block
from gradcli.engine.device.cpu import Storage
from gradcli.engine.hooks import Hook
from gradcli.errors import AutogradError, OptionTypeError

Gradients = Sequence[Array | None]
Versions = list[tuple[Storage, int]]
_numbers = count()
_grad_enabled: ContextVar[bool] = ContextVar("grad_enabled", default=True)


class Rule(Protocol):
    """How gradients go back through a node: one an op, or one of a function of the user's."""

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    def backward(self, grads: Gradients, saved: Any) -> Gradients:
        """Gradients of the inputs from those of the outputs and what the node saved."""
        ...

    def backward_create_graph(self, node: Node, grads: Sequence[Any]) -> Sequence[Any]:
        """The same with Tensors, by ops that build a graph for double backward."""
        ...


class Leaf:
    """Where gradients end up: one for each tensor that the user wants a gradient of.

    Attributes:
        grad: the gradient accumulated so far.
        history: (grad, node, output), the origin of `grad`, if a second backward pass may follow.
        hooks: they may change a gradient before it is added.
        after: hooks called after it was added.
    """

    __slots__ = ("after", "grad", "history", "hooks", "number")

    def __init__(self) -> None:
        self.grad: Array | None = None
        self.history: tuple[Array, Node | Leaf, int] | None = None
        self.hooks: tuple[Hook, ...] = ()
        self.after: tuple[Callable[[], None], ...] = ()
        self.number = next(_numbers)

    def clear(self, set_to_none: bool) -> None:
        """Forget the gradient, or overwrite it with 0."""
        if set_to_none:
            self.grad = None
        elif self.grad is not None:
            fill(self.grad, 0)
            self.grad.storage.version += 1


class Later:
    """What a node holds instead of saved values that are computed again when they are needed."""

    def take(self) -> tuple[Any, Versions]:
        """What the node would have saved, and the versions of that memory."""
        raise NotImplementedError


class Node:
    """One call of an op: where its inputs came from, and how gradients go back to them.

    `parents` has one entry an input: (node or leaf, which of its outputs), or None where no
    gradient is wanted. `saved` is what the rule needs, or a Later; None once the graph is freed.
    """

    __slots__ = ("hooks", "number", "options", "outputs", "parents", "rule", "saved", "versions")

    def __init__(
        self,
        rule: Rule,
        parents: Sequence[Edge | None],
        saved: Any,
        outputs: int,
        arrays: Iterable[Array] = (),
        options: dict[str, Any] | None = None,
    ) -> None:
        self.rule = rule
        self.number = next(_numbers)
        self.outputs = outputs
        self.parents = parents
        self.saved = saved
        self.options = options
        self.hooks: tuple[Hook, ...] = ()
        self.versions: Versions = [(a.storage, a.storage.version) for a in arrays]

    @property
    def name(self) -> str:
        """The op's name."""
        return self.rule.name

    def check(self) -> None:
        """Restore what a checkpoint dropped; refuse saved values that were freed or overwritten."""
        while isinstance(self.saved, Later):
            self.saved, self.versions = self.saved.take()
        if self.saved is None:
            raise AutogradError(
                f"{self.name}: its graph was freed by an earlier backward; "
                "pass retain_graph=True to the first one to go back twice"
            )
        if any(storage.version != version for storage, version in self.versions):
            raise overwritten(self.name)

    def free(self) -> None:
        """Release the saved values and the graph behind."""
        self.saved = self.options = None
        self.parents = self.hooks = ()
        self.versions = []


def overwritten(name: str) -> AutogradError:
    """What to say where memory has changed that a gradient needs."""
    return AutogradError(
        f"{name}: a value kept for its gradient was changed in place since; "
        "change a clone() instead"
    )


Edge = tuple[Node | Leaf, int]


def now() -> int:
    """A number between those of the nodes made so far and those to come."""
    return next(_numbers)


# Whether ops on tensors build a graph for backward.
grad_enabled: Callable[[], bool] = _grad_enabled.get


def run_with_grad(mode: bool, run: Callable[[], None]) -> None:
    """Call a function with gradients enabled or disabled."""
    before = _grad_enabled.set(mode)
    try:
        run()
    finally:
        _grad_enabled.reset(before)


class set_grad_enabled(Block):  # noqa: N801 -- torch's name
    """Enable or disable gradients inside a `with` block or a decorated function."""

    variable = _grad_enabled

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise OptionTypeError(f"set_grad_enabled: mode must be True or False, got {mode!r:.60}")
        super().__init__(mode)


class no_grad(set_grad_enabled):  # noqa: N801 -- torch's name
    """Disable gradients: ops build no graph and save nothing for backward.

    Decorates a function with and without brackets.
    """

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """The context, or the function that runs in it."""
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(set_grad_enabled):  # noqa: N801 -- torch's name
    """Enable gradients inside a no_grad block."""

    def __init__(self) -> None:
        super().__init__(True)
