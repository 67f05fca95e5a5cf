"""Hooks: functions of the user that run before or after a module's forward."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from gradcli.errors import DTypeError

if TYPE_CHECKING:
    from gradcli.engine.nn.module import Module


class Hook(NamedTuple):
    """One function, and how it is called."""

    function: Callable[..., Any]
    before: bool
    with_kwargs: bool


class RemovableHandle:
    """What registering a hook gives: `remove()` takes it away, and so does the end of a `with`."""

    def __init__(self, module: Module, hook: Hook) -> None:
        self._module = module
        self._hook = hook

    def remove(self) -> None:
        """Take the hook away; a second time does nothing."""
        module = self._module
        module._hooks = tuple(hook for hook in module._hooks if hook is not self._hook)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.remove()


def register(module: Module, hook: Hook, prepend: bool) -> RemovableHandle:
    """Enter a hook behind those that are there, or before them."""
    if not callable(hook.function):
        raise DTypeError(f"a hook must be a function, got {type(hook.function).__name__}")
    module._hooks = (hook, *module._hooks) if prepend else (*module._hooks, hook)
    return RemovableHandle(module, hook)


def call(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The module's forward between its hooks; what a hook returns replaces what it was given."""
    hooks = module._hooks
    for hook in hooks:
        if hook.before:
            args, kwargs = _before(hook, module, args, kwargs)
    result = module.forward(*args, **kwargs)
    for hook in hooks:
        if not hook.before:
            given = (module, args, kwargs) if hook.with_kwargs else (module, args)
            replaced = hook.function(*given, result)
            result = result if replaced is None else replaced
    return result


def _before(
    hook: Hook, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if not hook.with_kwargs:
        replaced = hook.function(module, args)
        if replaced is None:
            return args, kwargs
        return replaced if isinstance(replaced, tuple) else (replaced,), kwargs
    replaced = hook.function(module, args, kwargs)
    if replaced is None:
        return args, kwargs
    if not isinstance(replaced, tuple) or len(replaced) != 2:
        raise DTypeError("a forward pre-hook with kwargs must return None or (args, kwargs)")
    return replaced
