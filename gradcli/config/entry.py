"""Entry: a class or function of the engine under a name of YAML."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any


@dataclass(frozen=True, eq=False)
class Entry:
    """A row of a table: what a name in YAML makes, whose parameters are its keys.

    Attributes:
        make: a class or function of the engine.
        skip: how many parameters in front are no keys, such as the weights to optimize.
        leave: names of further parameters that are no keys.
        types: the types of keys that YAML narrows.
        required: keys that have no default in YAML.
    """

    make: Callable[..., Any]
    skip: int = 0
    leave: Collection[str] = ()
    types: Mapping[str, Any] = field(default_factory=dict)
    required: Collection[str] = ()

    def __call__(self, **values: Any) -> Callable[..., Any]:
        """What takes the skipped arguments, with these values as the others."""
        return partial(self.make, **values)

    def parameters(self) -> list[inspect.Parameter]:
        """Those that are keys, as YAML has them."""
        own = list(inspect.signature(self.make).parameters.values())[self.skip :]
        return [
            parameter.replace(default=parameter.empty)
            if parameter.name in self.required
            else parameter
            for parameter in own
            if parameter.name not in self.leave
        ]


def doc_of(make: Callable[..., Any]) -> str:
    """What the documentation of a row of a table says."""
    return inspect.getdoc(make.make if isinstance(make, Entry) else make) or ""
