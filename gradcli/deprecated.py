"""Old public names: they keep working, with a DeprecationWarning that gives the new name."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def lookup(module: str, names: Mapping[str, str], name: str) -> Any:
    """The object whose old name this is, for a module's `__getattr__`.

    Args:
        module: the module that has the old and the new name.
        names: new names by old ones.
        name: what was asked for.

    Raises:
        AttributeError: it is no old name.
    """
    if name not in names:
        raise AttributeError(f"{module} has no '{name}'")
    new = names[name]
    warnings.warn(f"{module}.{name} is now {module}.{new}", DeprecationWarning, stacklevel=3)
    return getattr(sys.modules[module], new)


def renamed_keyword(old: str, new: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator of a function that has to accept the old name of a keyword too.

    Args:
        old: the old name, which warns.
        new: the new name, under which the function gets the value.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if old in kwargs and new not in kwargs:
                text = f"{function.__qualname__}: {old} is now {new}"
                warnings.warn(text, DeprecationWarning, stacklevel=2)
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate
