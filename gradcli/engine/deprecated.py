"""Old public names: they keep working, with a DeprecationWarning that gives the new name."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any


def lookup(module: str, names: Mapping[str, str], name: str) -> Any:
    """The object whose old name this is, for a module's `__getattr__`.

    Args:
        module: the module that has the old and the new name.
        names: new names by old ones.
        name: what was asked for.

    Raises:
        AttributeError: it is no old name.
    """
    if name not in names:
        raise AttributeError(f"{module} has no '{name}'")
    new = names[name]
    warnings.warn(f"{module}.{name} is now {module}.{new}", DeprecationWarning, stacklevel=3)
    return getattr(sys.modules[module], new)
