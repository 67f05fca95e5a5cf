"""Table: the declared ops by name. `OPS[name]` looks one up, `table.exp(x)` calls the one named.

table.pyi lists them for editors and mypy, with the types of their arguments and results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.registry import Registry

OPS: Registry[Callable[..., Any]] = Registry("op")
# Methods only: x.float() gives another type of elements, engine.float is that type.
_OF_TYPES = ("bfloat16", "bool", "double", "float", "int", "long")
__all__: list[str] = []  # what the engine takes over


def enter(name: str, function: Callable[..., object]) -> None:
    """Enter an op or a function composed of ops; each name once."""
    globals()[name] = OPS.add(name, function)
    if not name.startswith("_") and name not in _OF_TYPES:
        __all__.append(name)
