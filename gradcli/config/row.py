"""Row: a class or function under a name of YAML; its parameters are the keys."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, partial
from inspect import Parameter
from typing import Any, TypeVar

from gradcli.engine.argument import hints_of
from gradcli.errors import OptionError, ShapeError

REQUIRED = Parameter.empty
Make = TypeVar("Make", bound=Callable[..., Any])


class Row:
    """A row of a table: what a name in YAML makes.

    Args:
        make: a class or function, mostly of the engine.
        keys: the keys in order, `key` or `key=parameter`; all parameters where it is left out.
        skip: how many parameters in front are no keys, such as the weights to optimize.
        leave: names of further parameters that are no keys.
        types: the types of parameters that YAML narrows.
        defaults: of YAML's own, by parameter; REQUIRED where it has none.
        trial: makes stand-ins for the skipped arguments, so that values are tried together early.
    """

    def __init__(
        self,
        make: Callable[..., Any],
        keys: str | None = None,
        *,
        skip: int = 0,
        leave: Collection[str] = (),
        types: Mapping[str, Any] | None = None,
        defaults: Mapping[str, Any] | None = None,
        trial: Callable[[], Any] | None = None,
    ) -> None:
        self.make = make
        self.skip = skip
        self.leave = leave
        self.types = types or {}
        self.defaults = defaults or {}
        self.trial = trial
        self._keys = keys

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters of `make`, with types for annotations."""
        return typed_parameters(self.make)

    @cached_property
    def keys(self) -> dict[str, str]:
        """The parameter behind each key; `in_` is the key `in`, which Python keeps for itself."""
        if self._keys is None:
            names = list(self.parameters)[self.skip :]
            return {name.rstrip("_"): name for name in names if name not in self.leave}
        pairs = (word.partition("=") for word in self._keys.split())
        return {key: parameter or key for key, _, parameter in pairs}

    @property
    def fields(self) -> dict[str, Parameter]:
        """The parameters by key, with default and type as YAML has them."""
        return {key: self._field(key, name) for key, name in self.keys.items()}

    def _field(self, key: str, name: str) -> Parameter:
        parameter = self.parameters[name]
        return parameter.replace(
            default=self.defaults.get(name, parameter.default),
            annotation=self.types.get(name, parameter.annotation),
        )

    @property
    def doc(self) -> str:
        """What its documentation says, in the words of YAML."""
        doc = inspect.getdoc(self.make) or ""
        for key, name in self.keys.items():
            doc = re.sub(rf"\b{name}\b", key, doc) if key != name else doc
        return doc

    def __call__(self, **values: Any) -> Any:
        """A function of the skipped arguments, which has the others from these values of keys."""
        maker = partial(self.make, **{self.keys[key]: value for key, value in values.items()})
        trial = self.trial
        if trial is not None:
            self.attempt(lambda: maker(trial()))
        return maker

    def attempt(self, call: Callable[[], Any]) -> None:
        """Refuse values that do not go together, in the words of what takes them."""
        try:
            call()
        except ShapeError:
            pass  # the trial's shape is not the one that will come
        except OptionError as error:
            name = getattr(self.make, "__name__", "")
            raise OptionError(error.message.removeprefix(f"{name}: ")) from None


def passing_on(to: Callable[..., Any], but: str = "") -> Callable[[Make], Make]:
    """Declares of a function that its `**named` go on to `to`: all parameters of that, `but` these.

    What the function has itself hides one of the same name.
    """

    def declare(function: Make) -> Make:
        inherited = typed_parameters(to)
        vars(function)["inherited"] = {
            name: parameter.replace(kind=Parameter.KEYWORD_ONLY)
            for name, parameter in inherited.items()
            if name not in but.split()
        }
        return function

    return declare


def typed_parameters(make: Callable[..., Any]) -> dict[str, Parameter]:
    """The parameters of a function or class with types for annotations.

    A constructor that takes `**named` also takes what the class above it does; see passing_on for
    functions.
    """
    params = getattr(make, "__dict__", {}).get("__dataclass_params__")
    if not isinstance(make, type) or (params and params.init):  # its constructor is generated
        hints, inherited = hints_of(make), getattr(make, "inherited", {})
        own = {
            name: parameter.replace(annotation=hints.get(name, Any))
            for name, parameter in inspect.signature(make).parameters.items()
            if not (inherited and parameter.kind is parameter.VAR_KEYWORD)
        }
        return own | {name: p for name, p in inherited.items() if name not in own}
    merged: dict[str, Parameter] = {}
    for kind in (each for each in make.__mro__ if "__init__" in vars(each)):
        parameters = list(typed_parameters(vars(kind)["__init__"]).values())[1:]
        open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters)
        plain = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        merged = {p.name: p for p in plain} | merged
        if not open_ended:
            break
    return merged
