"""Constructors of the library's classes, checked against their annotations before they run."""

from __future__ import annotations

from functools import wraps
from typing import TypeVar

from gradcli.engine.argument import Arguments, too_large

Class = TypeVar("Class", bound=type)


def checked_constructor(kind: Class) -> Class:
    """The class, whose own constructor refuses arguments that do not fit their annotations.

    The name in the sentence is that of the class that is made, which may be a subclass.
    """
    plain = vars(kind)["__init__"]
    checks: dict[str, Arguments] = {}

    @wraps(plain)
    def construct(self: object, *args: object, **named: object) -> None:
        name = type(self).__name__
        arguments = checks.get(name)
        if arguments is None:
            arguments = checks[name] = Arguments(name, plain)
        args, named = arguments.taken((self, *args), named)
        try:
            plain(*args, **named)
        except OverflowError:
            raise too_large(name, arguments.by_name(args, named)) from None

    kind.__init__ = construct  # type: ignore[misc]
    return kind


def check_library_constructor(kind: type) -> None:
    """The same for a class of the library that has a constructor of its own; no user's class."""
    if in_library(kind) and "__init__" in vars(kind):
        checked_constructor(kind)


def in_library(kind: type) -> bool:
    """Whether a class is the library's own."""
    return kind.__module__.startswith("gradcli.")
