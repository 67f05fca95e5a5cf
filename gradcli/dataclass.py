"""dataclass: that of the standard library, at half the price.

The library's writes and compiles a text, a comparison and a hash for every class, and each start of
gradcli declares two hundred. Here they are closures over the names of the fields, with the same
results.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(kind=None, /, *, eq=True, repr=True, frozen=False, **options):
        """The class as `dataclasses.dataclass` makes it with these options."""

        def declared(kind):
            own = set(vars(kind))
            kind = dataclasses.dataclass(eq=False, repr=False, frozen=frozen, **options)(kind)
            fields = dataclasses.fields(kind)
            if repr and "__repr__" not in own:
                kind.__repr__ = _text([one.name for one in fields if one.repr])
            if eq and "__eq__" not in own:
                kind.__eq__, hash_of = _comparison([one.name for one in fields if one.compare])
                if "__hash__" not in own:
                    kind.__hash__ = hash_of if frozen else None
            return kind

        return declared if kind is None else declared(kind)


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
