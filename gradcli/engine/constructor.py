"""Constructors of the library's classes: declared by fields, checked before they run."""

from __future__ import annotations

from dataclasses import InitVar, field
from functools import wraps
from inspect import signature
from typing import Any, ClassVar, TypeVar, dataclass_transform

from gradcli.dataclass import dataclass
from gradcli.engine.argument import Arguments, hints_of, too_large

Class = TypeVar("Class", bound=type)


def checked_constructor(kind: Class) -> Class:
    """The class, whose own constructor refuses arguments that do not fit their annotations.

    The name in the sentence is that of the class that is made, which may be a subclass.
    """
    plain = kind.__init__  # type: ignore[misc]
    checks: dict[str, Arguments] = {}

    @wraps(plain)
    def construct(self: object, *args: object, **keywords: object) -> None:
        name = type(self).__name__
        arguments = checks.get(name)
        if arguments is None:
            arguments = checks[name] = Arguments(name, plain)
        args, keywords = arguments.convert((self, *args), keywords)
        try:
            plain(*args, **keywords)
        except OverflowError:
            raise too_large(name, arguments.by_name(args, keywords)) from None
        except TypeError as error:
            if type(error) is TypeError:  # Python names the class that wrote the constructor
                text = str(error).replace(f"{plain.__qualname__}()", f"{name}.__init__()")
                error.args = (text,)
            raise

    kind.__init__ = construct  # type: ignore[misc]
    return kind


def check_library_constructor(kind: type) -> None:
    """The same for a class of the library that has a constructor of its own; no user's class."""
    if in_library(kind) and "__init__" in vars(kind):
        checked_constructor(kind)


def in_library(kind: type) -> bool:
    """Whether a class is the library's own."""
    return kind.__module__.startswith("gradcli.")


@dataclass_transform(eq_default=False, field_specifiers=(field,))
class FieldConstructor:
    """A class of the library whose fields are its constructor's parameters, as of a dataclass.

    A class that users derive from one has the constructor that it inherits or writes.

    Attributes:
        hints: the type of each parameter.
    """

    hints: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **keywords: object) -> None:
        if in_library(cls) and "__init__" not in vars(cls):
            dataclass(eq=False, repr=False)(cls)
            types = hints_of(cls)
            hints = {name: types[name] for name in signature(cls).parameters}
            cls.hints = {k: t.type if isinstance(t, InitVar) else t for k, t in hints.items()}
            cls.__init__.hints = cls.hints  # type: ignore[attr-defined]
        super().__init_subclass__(**keywords)
