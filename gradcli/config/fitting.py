"""Values that plainly fit their types. Most configs have no mistake, and pydantic is late for them.

Its import takes a quarter of a start. Whatever is not plain is left to it: this knows no sentence,
and takes nothing that pydantic would refuse or would take as something else.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import is_dataclass
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, Union, get_args, get_origin

from gradcli.config.fields import Limits

_EXACT = 2**53  # whole numbers up to here are floats
# Modules of Limits, and of notes that pydantic does not read.
_PLAIN_MODULES = ("gradcli.", "builtins")


class DoubtfulValue(Exception):  # noqa: N818 -- pydantic decides
    """A value that does not plainly fit."""


class Fields(Protocol):
    """The keys of a map with their types."""

    def fitting(self, value: Any) -> dict[str, Any]:
        """The values by key."""


Sections = Callable[[type], Fields]  # the fields of a dataclass


def fitting(hint: Any, value: Any, sections: Sections) -> Any:
    """The value as its type has it."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _limited(fitting(inner[0], value, sections), inner[1:])
    if origin in (Union, types.UnionType):
        return _only(inner, value, sections)
    if origin is Literal:
        return _ensured(
            value, any(type(choice) is type(value) and choice == value for choice in inner)
        )
    if origin in (list, tuple, dict):
        return _container(origin, inner, value, sections)
    if isinstance(hint, type) and is_dataclass(hint):
        alone = getattr(hint, "ALONE", None)
        keys = value if isinstance(value, dict) or alone is None else {alone: value}
        return hint(**sections(hint).fitting(keys))
    return _scalar(hint, value)


def _ensured(value: Any, plain: bool) -> Any:
    if not plain:
        raise DoubtfulValue
    return value


def _limited(value: Any, notes: tuple[Any, ...]) -> Any:
    """Check the value against the limits in Annotated; own code may add others."""
    _ensured(notes, all(type(note).__module__.startswith(_PLAIN_MODULES) for note in notes))
    return _ensured(value, all(note.allow(value) for note in notes if isinstance(note, Limits)))


def _only(choices: tuple[Any, ...], value: Any, sections: Sections) -> Any:
    """The value as the one type has it that takes it; of several pydantic chooses."""
    results = []
    for choice in choices:
        try:
            results.append(fitting(choice, value, sections))
        except DoubtfulValue:
            continue
    return _ensured(results, len(results) == 1)[0]


def _container(origin: Any, inner: tuple[Any, ...], value: Any, sections: Sections) -> Any:
    if origin is dict:
        entries = _ensured(value, type(value) is dict and inner[0] is str)
        return {key: fitting(inner[1], item, sections) for key, item in entries.items()}
    items = _ensured(value, type(value) is list)
    hints = inner
    if origin is list or inner[-1] is Ellipsis:
        hints = inner[:1] * len(items)
    _ensured(items, len(hints) == len(items))
    return origin(fitting(kind, item, sections) for kind, item in zip(hints, items, strict=True))


def _scalar(hint: Any, value: Any) -> Any:
    if hint is float and type(value) is int:
        return float(_ensured(value, abs(value) <= _EXACT))
    if hint is float:
        return _ensured(value, type(value) is float and isfinite(value))
    if hint is Path:
        return Path(_ensured(value, type(value) is str))
    plain = hint in (int, bool, str, type(None)) and type(value) is hint
    return _ensured(value, plain or hint is Any)
