"""step_by_step: by this mark a layer says that it need not see all steps of a sequence at once."""

from __future__ import annotations

from gradcli.wording import quantity

__all__ = ["step_by_step"]

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple, TypeVar, overload

from gradcli.engine.nn.hooks import ForwardHook
from gradcli.engine.nn.module import Module
from gradcli.engine.shape import Shape
from gradcli.errors import OptionError

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__step_by_step__"
# What a subclass may have of its own without changing what a declared forward computes.
_HARMLESS = {"__init__", "__init_subclass__", "__repr__", "extra_repr", "reset_parameters"}


class _Mark(NamedTuple):
    """What a layer says of its forward; see step_by_step."""

    forward: Callable[..., Any]
    unless: Callable[[Any], str] | None
    answers_for: frozenset[str]


@overload
def step_by_step(forward: F, /) -> F: ...
@overload
def step_by_step(
    *, unless: Callable[[Any], str] | None = None, answers_for: Sequence[str] = ()
) -> Callable[[F], F]: ...
def step_by_step(
    forward: F | None = None,
    /,
    *,
    unless: Callable[[Any], str] | None = None,
    answers_for: Sequence[str] = (),
) -> F | Callable[[F], F]:
    """Declare that `forward` gives the same numbers for all steps at once and for one at a time.

    It takes (batch, steps, numbers), or whole numbers (batch, steps), and gives (batch, steps,
    numbers). Either each step is computed by itself, or what it needs of earlier steps is its
    `state` (StatefulModule). A subclass with another forward, or with another method of the class
    that declares, has to declare anew.

    Args:
        forward: the method of a Module; of several decorators this one stands outermost.
        unless: gives of a module why the declaration does not hold for it, or "".
        answers_for: names of modules inside that need not declare, because `forward` sees to it.
    """
    if isinstance(answers_for, str):
        raise OptionError(f"step_by_step: answers_for is a list of names, got {answers_for!r}")

    def mark(function: F) -> F:
        if isinstance(function, type) or not callable(function):
            raise OptionError(
                f"step_by_step: stands on the forward of a Module, got {function!r:.60}"
            )
        setattr(function, _MARK, _Mark(function, unless, frozenset(answers_for)))
        return function

    return mark if forward is None else mark(forward)


def unless_features(dim: int | None) -> str:
    """Why a layer that works along `dim` does not work step by step; "" where it does."""
    return "" if dim == -1 or (dim is not None and dim >= 2) else f"works along dim={dim}"


def unless_last(shape: Shape) -> str:
    """Why a norm over dimensions of this shape does not work step by step; "" where it does."""
    return (
        ""
        if len(shape) == 1
        else f"normalizes over the last {quantity(len(shape), 'dimension')} at once"
    )


def unless_random(module: Any, p: float) -> str:
    """Why a layer that drops numbers with probability p does not; "" where it does."""
    return "drops at random in training mode" if module.training and p else ""


def obstacle(model: Module) -> str:
    """Why a KeyValueCache cannot run the model, with the first layer to blame; "" if it can."""
    return next(_obstacles(model), "")


def _obstacles(model: Module) -> Iterator[str]:
    visits: set[tuple[int, bool]] = set()
    stack = [("", model, False)]  # path, module, whether one above answers for it
    while stack:
        path, module, trust = stack.pop()
        if (id(module), trust) in visits:
            continue
        visits.add((id(module), trust))
        mark = _mark(module)
        reason = _own_obstacle(module) or ("" if trust else _class_obstacle(module, mark))
        if reason:
            title = f"layer '{path}'" if path else "the model"
            yield f"{title} ({type(module).__name__}) {reason}"
        names = mark.answers_for if mark else ()
        stack += [
            (f"{path}.{name}" if path else name, child, trust or name in names)
            for name, child in reversed(module._modules.items())
            if child is not None
        ]


def _mark(module: Module) -> _Mark | None:
    """The mark on the module's forward; one that a wrapper has copied does not count."""
    forward = type(module).forward
    mark: _Mark | None = getattr(forward, _MARK, None)
    return mark if mark is not None and mark.forward is forward else None


def _own_obstacle(module: Module) -> str:
    """What was put between a call of this one module and the forward of its class."""
    if any(isinstance(hook, ForwardHook) for hook in module._hooks):
        return "has a forward hook, which may look at other steps"
    kind = type(module)
    return _may_look(
        next((name for name in vars(module) if callable(getattr(kind, name, None))), "")
    )


def _class_obstacle(module: Module, mark: _Mark | None) -> str:
    """Why the module is not known to work step by step; "" where it is."""
    kind = type(module)
    owner = next(cls for cls in kind.__mro__ if "forward" in vars(cls))
    holds_only = owner is Module  # and has no forward, as ModuleList
    if mark is None and not holds_only:
        return "does not say that it works step by step"
    reason = _may_look(next(_other_methods(kind, owner), ""))
    return reason or (mark.unless(module) if mark and mark.unless else "")


def _may_look(method: str) -> str:
    return f"has its own {method}, which may look at other steps" if method else ""


def _other_methods(kind: type, owner: type) -> Iterator[str]:
    """Methods of the class that owns the forward that its subclasses have replaced."""
    for cls in takewhile(lambda cls: cls is not owner, kind.__mro__):
        for name, value in vars(cls).items():
            method = callable(value) or isinstance(value, (property, classmethod, staticmethod))
            if method and name not in _HARMLESS and hasattr(owner, name):
                yield name
