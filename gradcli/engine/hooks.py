"""Hooks of gradients: functions of the user that see the gradient at a node of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

from gradcli.engine.array import Array
from gradcli.engine.dtype import DType
from gradcli.engine.shape import Shape
from gradcli.errors import AutogradError, DTypeError, ShapeError


class Hook(NamedTuple):
    """One entry at a node or leaf: at which output, and what makes of a gradient another.

    Where `cell` is given, the gradient is only added up there, after all hooks have run.
    """

    output: int
    function: Callable[[Any], Any]
    cell: Any = None


class RemovableHandle:
    """What registering a hook gives: `remove()` takes it away, and so does the end of a `with`."""

    def __init__(self, owner: object, attribute: str, hook: object) -> None:
        self._owner = owner
        self._attribute = attribute
        self._hook = hook

    def remove(self) -> None:
        """Take the hook away; a second time does nothing."""
        remaining = tuple(h for h in getattr(self._owner, self._attribute) if h is not self._hook)
        setattr(self._owner, self._attribute, remaining)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.remove()


def enter(owner: object, attribute: str, hook: object, *, prepend: bool = False) -> RemovableHandle:
    """Put a hook behind those of the owner, or before them.

    They stand in a tuple, which is replaced: so a recorded step notices that they changed.
    """
    there = getattr(owner, attribute)
    setattr(owner, attribute, (hook, *there) if prepend else (*there, hook))
    return RemovableHandle(owner, attribute, hook)


def check_hook(name: str, function: Any) -> Callable[..., Any]:
    """The hook itself; refuses what cannot be called."""
    if not callable(function):
        raise DTypeError(f"{name}: a hook must be a function, got {type(function).__name__}")
    return function  # type: ignore[no-any-return]


def of_tensors(
    function: Callable[[Any], Any], make: Callable[[Array], Any], shape: Shape, dtype: DType
) -> Callable[[Any], Any]:
    """Wrap a hook of Tensors for backward passes over Arrays and over Tensors."""

    def hooked(grad: Any) -> Any:
        plain = isinstance(grad, Array)
        argument = make(grad) if plain else grad
        result = function(argument)
        if result is None or result is argument:
            return grad
        if not isinstance(result, type(argument)):
            raise DTypeError(
                f"register_hook: a hook must give a Tensor or None, got {type(result).__name__}"
            )
        if result.shape != shape or result.dtype is not dtype:
            raise ShapeError(
                f"register_hook: a hook gave a gradient of {result.dtype} {result.shape} "
                f"for a tensor of {dtype} {shape}"
            )
        return result.array if plain else result

    return hooked


def ran(hooks: tuple[Hook, ...], slots: list[object]) -> list[Any]:
    """What hooks make of the gradients of a node's outputs, one after the other."""
    for hook in hooks:
        if hook.cell is None and slots[hook.output] is not None:
            slots[hook.output] = hook.function(slots[hook.output])
    return slots


def asks_for_gradient(name: str, requires_grad: bool) -> None:
    """Refuse a tensor that no gradient reaches."""
    if not requires_grad:
        raise AutogradError(
            f"{name}: this tensor does not ask for a gradient; see requires_grad_()"
        )
