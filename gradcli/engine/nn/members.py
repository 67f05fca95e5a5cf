"""What lists and dicts of modules and of parameters have in common."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, ValuesView
from typing import Any, ClassVar, Generic, Self, TypeVar

from gradcli.engine.nn.module import Module
from gradcli.errors import OptionError, RangeError

T = TypeVar("T")


class _Members(Module, Generic[T]):
    """Members of one kind, under names."""

    _table: ClassVar[str]  # of the module, where they are

    def _members(self) -> dict[str, Any]:
        table: dict[str, Any] = getattr(self, self._table)
        return table

    def __len__(self) -> int:
        return len(self._members())


class ByPosition(_Members[T]):
    """Members by position; their names are numbers, or what the user chose."""

    def _enter(self, name: str, member: T) -> None:
        raise NotImplementedError

    def extend(self, members: Iterable[T], /) -> Self:
        """Put several at the end."""
        raise NotImplementedError

    def _position(self, index: int) -> str:
        """The name of the member that stands there."""
        names = list(self._members())
        if not -len(names) <= index < len(names):
            raise RangeError(
                f"{type(self).__name__}: index {index} is outside {-len(names)}..{len(names) - 1}"
            )
        return names[index]

    def __iter__(self) -> Iterator[T]:
        return iter([member for member in self._members().values() if member is not None])

    def __setitem__(self, index: int, member: T) -> None:
        self._enter(self._position(index), member)

    def __iadd__(self, members: Iterable[T]) -> Self:
        return self.extend(members)


class ByName(_Members[T]):
    """Members by name."""

    _kind: ClassVar[str]  # what a refusal calls a member

    def _member(self, key: str) -> T:
        member: T | None = self._members().get(key)
        if member is None:
            names = ", ".join(self._members()) or "none"
            raise RangeError(
                f"{type(self).__name__}: no {self._kind} is called '{key}'; there are: {names}"
            )
        return member

    def __getitem__(self, key: str) -> T:
        return self._member(key)

    def __setitem__(self, key: str, member: Any) -> None:
        raise NotImplementedError

    def __delitem__(self, key: str) -> None:
        self._member(key)
        del self._members()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members())

    def __contains__(self, key: object) -> bool:
        return key in self._members()

    def clear(self) -> None:
        """Take all out."""
        self._members().clear()

    def pop(self, key: str) -> T:
        """Take a member out."""
        member = self._member(key)
        del self[key]
        return member

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._members().keys()

    def items(self) -> ItemsView[str, T]:
        """Names with their members."""
        return self._members().items()

    def values(self) -> ValuesView[T]:
        """The members."""
        return self._members().values()

    def _enter_pairs(self, pairs: Iterable[Any]) -> None:
        """Enter pairs (name, member)."""
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                name = type(self).__name__
                raise OptionError(f"{name}: takes a mapping or pairs, got {pair!r:.60}")
            self[pair[0]] = pair[1]
