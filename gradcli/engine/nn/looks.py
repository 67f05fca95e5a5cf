"""What Python looks at in modules while a step is recorded, and how recordings hear of changes.

Reading attributes is what Python does most: so the class that all modules have in common gets its
way of reading only while somebody records. A change is told at any time; that costs little, and a
replay need not compare anything before it hears of one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from gradcli.engine import recording
from gradcli.engine.recording import INHERITED, Members
from gradcli.engine.tensor import Tensor

T = TypeVar("T")
TABLES = ("_parameters", "_buffers", "_modules")


class Table(dict[str, T]):
    """Members of a module by name, which tells recordings when one comes, goes or is replaced."""

    __slots__ = ()


def _telling(plain: Callable[..., object]) -> Callable[..., Any]:
    def change(self: dict[str, object], *args: object, **keywords: object) -> Any:
        try:
            return plain(self, *args, **keywords)
        finally:
            recording.invalidate()

    return change


for _name in ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault"):
    setattr(Table, _name, _telling(getattr(dict, _name)))
Table.update = _telling(dict.update)  # type: ignore[method-assign]


def fact(module: object, name: str) -> Any:
    """What an attribute of a module stands for: a plain value, or members and where they lie."""
    own = module.__dict__
    if name in TABLES and name in own:
        return Members((key, _member(value)) for key, value in own[name].items())
    if name in own:
        return _member(own[name]) if isinstance(own[name], Tensor) else own[name]
    for table in TABLES:
        if name in own.get(table, ()):
            return _member(own[table][name])
    return INHERITED


def _member(value: object) -> Members:
    """A tensor is replaced too when it gets other memory, or another place for its gradient."""
    if isinstance(value, Tensor):
        return Members((value, value.array, value.leaf))
    return Members((value,))


def watched(base: type) -> None:
    """While a step is recorded, tell what is read of instances of this class."""

    def read(self: Any, name: str) -> Any:
        recorder = recording.current()
        if recorder is not None and not name.startswith("__"):
            recorder.note_read(self, name, fact)
        return object.__getattribute__(self, name)

    def switch(on: bool) -> None:
        if on:
            type.__setattr__(base, "__getattribute__", read)
        else:
            type.__delattr__(base, "__getattribute__")

    recording.watch(switch)
