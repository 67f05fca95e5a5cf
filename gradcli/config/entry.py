"""Entry: a class or function of the engine under a name of YAML."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gradcli.errors import OptionError, ShapeError

REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True, eq=False)
class Entry:
    """A row of a table: what a name in YAML makes, whose parameters are its keys.

    Attributes:
        make: a class or function of the engine.
        skip: how many parameters in front are no keys, such as the weights to optimize.
        leave: names of further parameters that are no keys.
        types: the types of keys that YAML narrows.
        defaults: of YAML's own, by key; REQUIRED where it has none.
        trial: gives skipped arguments with which values are tried together, before there are any.
    """

    make: Callable[..., Any]
    skip: int = 0
    leave: Collection[str] = ()
    types: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    trial: Callable[[], Any] | None = None

    def __call__(self, **values: Any) -> Any:
        """What takes the skipped arguments, with these values as the others."""
        maker = partial(self.make, **values)
        trial = self.trial
        if trial is not None:
            self.tried(lambda: maker(trial()))
        return maker

    def tried(self, call: Callable[[], Any]) -> None:
        """Refuse values that do not go together, in the words of what takes them."""
        try:
            call()
        except ShapeError:
            pass  # what takes it in earnest has its own shape
        except OptionError as error:
            name = getattr(self.make, "__name__", "")
            raise OptionError(error.message.removeprefix(f"{name}: ")) from None

    def parameters(self) -> list[inspect.Parameter]:
        """Those that are keys, as YAML has them."""
        own = list(inspect.signature(self.make).parameters.values())[self.skip :]
        return [
            parameter.replace(default=self.defaults.get(parameter.name, parameter.default))
            for parameter in own
            if parameter.name not in self.leave
        ]


def doc_of(make: Callable[..., Any]) -> str:
    """What the documentation of a row of a table says."""
    return inspect.getdoc(make.make if isinstance(make, Entry) else make) or ""
