"""dataclass: that of the standard library, at a small part of the price.

The library's writes and compiles six methods for every frozen class. Each start of gradcli declares
almost two hundred, and makes objects of a third. Here the constructor is compiled when it is first
asked for; the other methods are closures over the names of the fields, with the same results.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(kind=None, /, *, init=True, repr=True, eq=True, frozen=False, kw_only=False):
        """Make a class as `dataclasses.dataclass` does with these options."""

        def decorate(kind):
            own = set(vars(kind))
            derived = any("__dataclass_params__" in vars(base) for base in kind.__mro__[1:])
            by_library = dataclasses.dataclass(
                init=init and not frozen,
                repr=False,
                eq=False,
                frozen=frozen and derived,  # it looks whether the classes above are frozen as well
                kw_only=kw_only,
            )
            kind = by_library(kind)
            fields = dataclasses.fields(kind)
            kind.__dataclass_params__.init, kind.__dataclass_params__.frozen = init, frozen
            if frozen and not derived:
                kind.__setattr__, kind.__delattr__ = _refusals(
                    kind, {field.name for field in fields}
                )
            if frozen and init and "__init__" not in own:
                kind.__init__ = _Constructor(kind)
            if repr and "__repr__" not in own:
                kind.__repr__ = _text([field.name for field in fields if field.repr])
            if eq and "__eq__" not in own:
                kind.__eq__, hash_of = _comparison(
                    [field.name for field in fields if field.compare]
                )
                if "__hash__" not in own:
                    kind.__hash__ = hash_of if frozen else None
            return kind

        return decorate if kind is None else decorate(kind)


class _Constructor:
    """Stands for the `__init__` of a frozen class until somebody asks for it."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def __get__(self, instance: object, owner: type) -> Any:
        init = _constructor(self.kind)
        self.kind.__init__ = init  # type: ignore[misc]
        return init.__get__(instance, owner)


def _constructor(kind: Any) -> Any:
    """Write `__init__` of a frozen class as the library does, but without InitVar."""
    missing = dataclasses.MISSING
    scope: dict[str, Any] = {"_set": object.__setattr__, "_missing": missing}
    positional, by_name, body = ["self"], ["*"], ["pass"]
    fields = dataclasses.fields(kind)
    for field in fields:
        name, default, new = field.name, f"_default_{field.name}", f"_new_{field.name}"
        scope |= {default: field.default, new: field.default_factory}
        has_factory, required = field.default_factory is not missing, field.default is missing
        if field.init:
            mine = by_name if field.kw_only else positional
            mine.append(name if required and not has_factory else f"{name}={default}")
            value = f"{new}() if {name} is _missing else {name}" if has_factory else name
            body.append(f"_set(self, {name!r}, {value})")
        elif has_factory:
            body.append(f"_set(self, {name!r}, {new}())")
    if hasattr(kind, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join(positional + by_name * (len(by_name) > 1))
    text = f"def __init__({parameters}): {'; '.join(body)}"
    functions: dict[str, Any] = {}
    module = vars(sys.modules[kind.__module__])
    exec(f"def write({', '.join(scope)}):\n {text}\n return __init__", module, functions)
    init = functions["write"](**scope)
    init.__qualname__ = f"{kind.__qualname__}.__init__"
    init.__annotations__ = {field.name: field.type for field in fields if field.init} | {
        "return": None
    }
    return init


def _refusals(kind: Any, names: set[str]) -> tuple[Callable[..., None], Callable[..., None]]:
    """`__setattr__` and `__delattr__` of a frozen class."""

    def set_attribute(self: object, name: str, value: object) -> None:
        if type(self) is kind or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(kind, self).__setattr__(name, value)

    def delete_attribute(self: object, name: str) -> None:
        if type(self) is kind or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(kind, self).__delattr__(name)

    return set_attribute, delete_attribute


def _text(names: Iterable[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def text(self: Any) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({fields})"

    return text


def _comparison(
    names: list[str],
) -> tuple[Callable[[Any, object], Any], Callable[[Any], int]]:
    """`__eq__` and `__hash__`."""
    # attrgetter gives a tuple of two and more; of one name written twice it is the same tuple.
    values = attrgetter(*names, *names[: len(names) == 1]) if names else lambda _: ()

    def equal(self: Any, other: object) -> Any:
        if type(other) is not type(self):
            return NotImplemented
        return values(self) == values(other)

    def hash_of(self: Any) -> int:
        return hash(values(self))

    return equal, hash_of
