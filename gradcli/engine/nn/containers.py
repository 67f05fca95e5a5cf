"""Modules that hold modules: Sequential, ModuleList and ModuleDict."""

from __future__ import annotations

__all__ = ["Sequential", "ModuleList", "ModuleDict"]

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, Self

from gradcli.engine.nn.members import ByName, ByPosition
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.steps import step_by_step
from gradcli.errors import DTypeError, RangeError


class _Numbered(ByPosition[Module]):
    """Modules in a row."""

    _table = "_modules"

    def _enter(self, name: str, module: object) -> None:
        if not isinstance(module, Module):
            raise DTypeError(f"{type(self).__name__}: '{name}' is no Module: {module!r:.60}")
        self.register_module(name, module)

    def _renumber(self, rows: Iterable[Module | None]) -> None:
        """The modules under their positions as names."""
        numbered = {str(i): module for i, module in enumerate(rows)}
        self._modules.clear()
        self._modules.update(numbered)

    def __contains__(self, module: object) -> bool:
        return any(module is child for child in self)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)
        for name in names[index] if isinstance(index, slice) else [self._position(index)]:
            del self._modules[name]
        self._renumber(list(self._modules.values()))

    def append(self, module: Module) -> Self:
        """Put one more module at the end."""
        self._enter(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Put several at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before position `index`."""
        if not -len(self) <= index <= len(self):
            raise RangeError(
                f"{type(self).__name__}: insert at {index} is outside {-len(self)}..{len(self)}"
            )
        rows = list(self._modules.values())
        self._enter(str(len(self)), module)
        rows.insert(index, module)
        self._renumber(rows)
        return self

    def pop(self, key: int) -> Module:
        """Take a module out."""
        module = self._modules[self._position(key)]
        del self[key]
        assert module is not None
        return module


class Sequential(_Numbered):
    """Each module's output is the next one's input.

    Takes modules, or one mapping from names to modules. A slice is a Sequential that shares them.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self._enter(name, module)
        else:
            self.extend(args)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(dict(list(self._modules.items())[index]))
        return self._modules[self._position(index)]

    def __add__(self, other: Iterable[Module]) -> Sequential:
        return Sequential(*self, *other)

    @step_by_step
    def forward(self, input: Any) -> Any:
        """All modules in turn."""
        for module in self:
            input = module(input)
        return input


class ModuleList(_Numbered):
    """Modules in a list; it has no forward."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._modules[self._position(index)]

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        """As torch shows it: neighbours that look the same stand in one row."""
        rows, at = [], 0
        for text, same in groupby(map(repr, self)):
            count = len(list(same))
            title = f"({at})" if count == 1 else f"({at}-{at + count - 1})"
            times = "" if count == 1 else f"{count} x "
            rows.append(f"{title}: {times}{text}".replace("\n", "\n  "))
            at += count
        name = type(self).__name__
        return f"{name}(\n  " + "\n  ".join(rows) + "\n)" if rows else f"{name}()"


class ModuleDict(ByName[Module]):
    """Modules by name; it has no forward."""

    _table, _kind = "_modules", "module"

    def __init__(self, modules: Mapping[str, Module] | Iterable[Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __setitem__(self, key: str, module: Module) -> None:
        if not isinstance(module, Module):
            raise DTypeError(f"ModuleDict: '{key}' is no Module: {module!r:.60}")
        self.register_module(key, module)

    def update(self, modules: Any) -> None:
        """Enter modules from a mapping, a ModuleDict or pairs (name, module)."""
        self._enter_pairs(modules.items() if isinstance(modules, Mapping | ByName) else modules)
