"""Names for things: look-up with suggestions, refusing doubles."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Generic, TypeVar

T = TypeVar("T")


def closest(name: str, names: Iterable[str]) -> str | None:
    """The known name most like `name`; None if nothing is near."""
    by_lower = {candidate.lower(): candidate for candidate in sorted(names)}
    # Of a name 7/3 as long as all others 60 % cannot be theirs; a name may have a million letters.
    if 3 * len(name) > 7 * max(map(len, by_lower), default=0):
        return None
    typed = name.lower()
    matches = difflib.get_close_matches(typed, by_lower, n=3, cutoff=0.6)
    # 'tahn' is 'tanh' before it is 'tan': two letters that changed places are one slip.
    matches.sort(key=lambda candidate: sorted(candidate) != sorted(typed))
    return by_lower[matches[0]] if matches else None


def did_you_mean(name: str, names: Iterable[str], otherwise: str = "") -> str:
    """The question that offers the known name most like `name`, or `otherwise`."""
    near = closest(name, names)
    return f"did you mean '{near}'?" if near else otherwise


class Registry(Mapping[str, T], Generic[T]):
    """A table from name to object that refuses a name given twice."""

    def __init__(self, kind: str, rows: Mapping[str, T] | None = None) -> None:
        self.kind = kind
        self._rows: dict[str, T] = dict(rows or {})

    def add(self, name: str, value: T) -> T:
        """Enter `value` under `name`; returns it, so that decorators can use it."""
        if name in self._rows:
            raise ValueError(f"{self.kind} '{name}' is declared twice")
        self._rows[name] = value
        return value

    def __getitem__(self, name: str) -> T:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class Late(MutableMapping[str, T], Generic[T]):
    """A table whose rows are imported when they are first looked up: written "module:object"."""

    def __init__(self, rows: Mapping[str, str]) -> None:
        self._rows: dict[str, T | str] = dict(rows)

    def __getitem__(self, name: str) -> T:
        row = self._rows[name]
        if isinstance(row, str):
            module, _, attribute = row.partition(":")
            row = getattr(import_module(module), attribute)
            self[name] = row
        return row

    def __setitem__(self, name: str, row: T) -> None:
        self._rows[name] = row

    def __delitem__(self, name: str) -> None:
        del self._rows[name]

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
