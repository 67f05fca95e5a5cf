"""Names for things: look-up with suggestions, refusing doubles."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from gradcli.errors import GradcliError

T = TypeVar("T")


def closest(name: str, names: Iterable[str]) -> str | None:
    """The known name most like `name`, or None when nothing is near."""
    by_lower = {candidate.lower(): candidate for candidate in sorted(names)}
    typed = name.lower()
    found = difflib.get_close_matches(typed, by_lower, n=3, cutoff=0.6)
    # 'tahn' is 'tanh' before it is 'tan': two letters that changed places are one slip.
    found.sort(key=lambda known: sorted(known) != sorted(typed))
    return by_lower[found[0]] if found else None


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

    def find(self, name: str) -> T:
        """The row called `name`; raises a GradcliError that suggests a near name."""
        if name not in self._rows:
            hint = did_you_mean(name, self._rows, f"known: {', '.join(sorted(self._rows))}")
            raise GradcliError(f"no {self.kind} is called '{name}'; {hint}", code="E102")
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
