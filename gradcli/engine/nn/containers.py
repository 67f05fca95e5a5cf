"""Modules that hold modules: Sequential and ModuleList."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from gradcli.engine.nn.module import Module
from gradcli.errors import DTypeError, RangeError


class _Numbered(Module):
    """Modules in a row, by position and by name."""

    def _position(self, index: int) -> str:
        names = list(self._modules)
        if not -len(names) <= index < len(names):
            raise RangeError(
                f"{type(self).__name__}: index {index} is outside {-len(names)}..{len(names) - 1}"
            )
        return names[index]

    def _enter(self, name: str, module: Any) -> None:
        if not isinstance(module, Module):
            raise DTypeError(f"{type(self).__name__}: '{name}' is no Module: {module!r:.60}")
        self.register_module(name, module)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter([module for module in self._modules.values() if module is not None])

    def __setitem__(self, index: int, module: Module) -> None:
        self._enter(self._position(index), module)

    def __delitem__(self, index: int) -> None:
        del self._modules[self._position(index)]
        rows = list(self._modules.values())
        self._modules.clear()
        self._modules.update({str(i): module for i, module in enumerate(rows)})

    def append(self, module: Module) -> Self:
        """Put one more module at the end."""
        self._enter(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Put several at the end."""
        for module in modules:
            self.append(module)
        return self


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

    def forward(self, input: Any) -> Any:
        """All modules in turn."""
        for module in self:
            input = module(input)
        return input


class ModuleList(_Numbered):
    """Modules in a list; it has no forward."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._modules[self._position(index)]
