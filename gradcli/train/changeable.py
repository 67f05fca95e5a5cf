"""Marks of the keys of a config that may change while a run goes on: `resume -s KEY=VALUE`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from gradcli.dataclass import dataclass


@dataclass(frozen=True)
class Changeable:
    """Marks a key or a whole section, by Annotated, that `resume` may change.

    Attributes:
        forks: whether a change affects later steps; it is then recorded as a fork.
        but: keys of the section that must not change.
    """

    forks: bool
    but: tuple[str, ...] = ()


ANYTIME = Changeable(forks=False)
FORKS = Changeable(forks=True)


def marks(of: Any, prefix: str = "") -> Iterator[tuple[str, Changeable]]:
    """The marked keys of a dataclass or a function, each by its path; sections inside as well."""
    for name, hint in get_type_hints(of, include_extras=True).items():
        for note in getattr(hint, "__metadata__", ()):
            if isinstance(note, Changeable):
                yield prefix + name, note
        for inner in _types(hint):
            if dataclasses.is_dataclass(inner):
                yield from marks(inner, f"{prefix}{name}.")


def _types(hint: Any) -> Iterator[Any]:
    """A type, without its notes, and those of a union."""
    if get_origin(hint) is Annotated:
        yield from _types(get_args(hint)[0])
    elif isinstance(hint, type):
        yield hint
    else:
        for inner in get_args(hint):
            yield from _types(inner)
