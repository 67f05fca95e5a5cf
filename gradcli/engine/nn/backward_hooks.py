"""Backward hooks of modules: what arrives at a call's results, and what leaves by its arguments.

The arguments of a call pass through one node on their way in, and its results through another on
their way out. All gradients of a call stand together there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.engine import graph
from gradcli.engine.double_backward import as_tuple
from gradcli.engine.graph import Gradients, Node
from gradcli.engine.tensor import Tensor, parents_of
from gradcli.errors import DTypeError, ShapeError
from gradcli.wording import quantity

if TYPE_CHECKING:
    from gradcli.engine.nn.module import Module

Tensors = Sequence[Tensor | None]


class BackwardHook(NamedTuple):
    """One function, called before a module's gradients are computed or after."""

    function: Callable[..., Any]
    before: bool


class HookedCall:
    """One call of a module that has backward hooks."""

    def __init__(self, module: Module, hooks: Sequence[BackwardHook]) -> None:
        self._module = module
        self._hooks = hooks
        self._arrived: Tensors = ()
        self._indices: list[int] = []  # of the arguments that want a gradient
        self._arguments = 0

    def wrap_arguments(self, args: tuple[object, ...]) -> tuple[Any, ...]:
        """The arguments, behind a node that calls the hooks."""
        wrapped, self._indices = _behind(_Gate("arguments", self._leave), args)
        self._arguments = len(args)
        return wrapped

    def wrap_results(self, result: object) -> Any:
        """The results, behind a node that calls the hooks."""
        wrapped, _ = _behind(_Gate("results", self._arrive), as_tuple(result))
        return wrapped if isinstance(result, tuple) else wrapped[0]

    def _arrive(self, grads: Tensors) -> Tensors:
        """Hooks that come before see the gradients of the results; what they give goes in."""
        for hook in self._hooks:
            if hook.before:
                grads = _replace(hook.function(self._module, tuple(grads)), grads)
        self._arrived = tuple(grads)
        if not self._indices:
            self._tell([None] * self._arguments)
        return grads

    def _leave(self, grads: Tensors) -> Tensors:
        """Call the hooks with the gradients of all arguments; pass on what they return."""
        full: list[Tensor | None] = [None] * self._arguments
        for index, grad in zip(self._indices, grads, strict=True):
            full[index] = grad
        changed_grads = self._tell(full)
        return [changed_grads[index] for index in self._indices]

    def _tell(self, grads: Tensors) -> Tensors:
        for hook in self._hooks:
            if not hook.before:
                result = hook.function(self._module, tuple(grads), self._arrived)
                grads = _replace(result, grads)
        self._arrived = ()
        return grads


def _behind(gate: _Gate, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int]]:
    """The tensors that want a gradient with one node of their own, and where they stand."""
    indices = [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad]
    if not indices or not graph.grad_enabled():
        return values, []
    node = Node(gate, parents_of([values[i] for i in indices]), (), len(indices))
    wrapped = list(values)
    for output, i in enumerate(indices):
        wrapped[i] = Tensor(values[i].array, node=node, output=output, alias=True)
    return tuple(wrapped), indices


class _Gate:
    """The rule of such a node: gradients pass as the hooks leave them."""

    def __init__(self, what: str, change: Callable[[Tensors], Tensors]) -> None:
        self.name = f"backward hook of {what}"
        self._change = change

    def backward(self, grads: Gradients, saved: object) -> Gradients:
        """Hand copies to the hooks and on from them: hooks may store what they get."""
        del saved
        changed_grads = self._change([None if g is None else Tensor(g.copy()) for g in grads])
        return [None if g is None else g.array.copy() for g in changed_grads]

    def backward_create_graph(self, node: Node, grads: Tensors) -> Tensors:
        """The same with Tensors."""
        del node
        return self._change(list(grads))


def _replace(result: object, grads: Tensors) -> Tensors:
    """The gradients that a hook returned; the old ones where it returned None."""
    if result is None:
        return grads
    values = as_tuple(result)
    if len(values) != len(grads):
        raise ShapeError(
            f"a backward hook must give {quantity(len(grads), 'gradient')} or None, it gave "
            f"{len(values)}"
        )
    for new, old in zip(values, grads, strict=True):
        if new is not None and not isinstance(new, Tensor):
            raise DTypeError(f"a backward hook must give Tensors, got {type(new).__name__}")
        if new is not None and old is not None and new.shape != old.shape:
            raise ShapeError(f"a backward hook gave a gradient of {new.shape} for {old.shape}")
    return values
