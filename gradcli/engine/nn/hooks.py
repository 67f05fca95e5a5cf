"""Hooks: functions of the user that run before or after a module's forward, or on the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.engine.hooks import RemovableHandle, checked, enter
from gradcli.engine.nn.backward_hooks import BackwardHook, Call
from gradcli.errors import DTypeError

if TYPE_CHECKING:
    from gradcli.engine.nn.module import Module


class Hook(NamedTuple):
    """One function, and how it is called."""

    function: Callable[..., Any]
    before: bool
    with_kwargs: bool


def register(module: Module, hook: Hook | BackwardHook, prepend: bool) -> RemovableHandle:
    """Enter a hook behind those that are there, or before them."""
    checked(type(module).__name__, hook.function)
    return enter(module, "_hooks", hook, prepend=prepend)


def call(module: Module, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """The module's forward between its hooks; what a hook returns replaces what it was given."""
    hooks = [hook for hook in module._hooks if isinstance(hook, Hook)]
    back = [hook for hook in module._hooks if isinstance(hook, BackwardHook)]
    for hook in hooks:
        if hook.before:
            args, kwargs = _before(hook, module, args, kwargs)
    border = Call(module, back)
    result = module.forward(*(border.entered(args) if back else args), **kwargs)
    for hook in hooks:
        if not hook.before:
            given = (module, args, kwargs) if hook.with_kwargs else (module, args)
            replaced = hook.function(*given, result)
            result = result if replaced is None else replaced
    return border.left(result) if back else result


def _before(
    hook: Hook, module: Module, args: tuple[object, ...], kwargs: dict[str, object]
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
