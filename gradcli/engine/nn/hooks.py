"""What stands around a module's forward: functions of the user, and that it is recomputed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.engine.hooks import RemovableHandle, check_hook, enter
from gradcli.engine.nn.backward_hooks import BackwardHook, HookedCall
from gradcli.engine.recompute import checkpoint, checkpoint_sequential
from gradcli.errors import DTypeError

if TYPE_CHECKING:
    from gradcli.engine.nn.module import Module


class ForwardHook(NamedTuple):
    """One function, and how it is called."""

    function: Callable[..., Any]
    before: bool
    with_kwargs: bool


class Recompute(NamedTuple):
    """Forward keeps nothing for backward but its arguments, and runs there once more.

    A Sequential may do so in parts, as many modules in each; the last one keeps what it computes,
    because backward begins with it.
    """

    parts: int = 1

    def forward(self, module: Module, *args: object, **kwargs: object) -> Any:
        """What the module's forward gives."""
        if self.parts == 1:
            return checkpoint(partial(module.forward, *args, **kwargs))
        return checkpoint_sequential(module.children(), self.parts, *args, **kwargs)


def recompute(module: Module, parts: int = 1) -> RemovableHandle:
    """Compute what the module's gradients need again in the backward pass, instead of saving it."""
    return enter(module, "_hooks", Recompute(parts))


def parts_of(module: Module) -> int:
    """In how many parts a module is recomputed; 0 where it keeps what it computes."""
    return next((hook.parts for hook in module._hooks if isinstance(hook, Recompute)), 0)


def register(module: Module, hook: ForwardHook | BackwardHook, prepend: bool) -> RemovableHandle:
    """Enter a hook behind those that are there, or before them."""
    check_hook(type(module).__name__, hook.function)
    return enter(module, "_hooks", hook, prepend=prepend)


def call(module: Module, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """The module's forward between its hooks; what a hook returns replaces what it was given."""
    hooks = [hook for hook in module._hooks if isinstance(hook, ForwardHook)]
    back = [hook for hook in module._hooks if isinstance(hook, BackwardHook)]
    for hook in hooks:
        if hook.before:
            args, kwargs = _before(hook, module, args, kwargs)
    border = HookedCall(module, back)
    forward: Callable[..., Any] = module.forward
    for entry in module._hooks:
        if isinstance(entry, Recompute):
            forward = partial(entry.forward, module)
    result = forward(*(border.wrap_arguments(args) if back else args), **kwargs)
    for hook in hooks:
        if not hook.before:
            arguments = (module, args, kwargs) if hook.with_kwargs else (module, args)
            replaced = hook.function(*arguments, result)
            result = result if replaced is None else replaced
    return border.wrap_results(result) if back else result


def _before(
    hook: ForwardHook, module: Module, args: tuple[object, ...], kwargs: dict[str, object]
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
