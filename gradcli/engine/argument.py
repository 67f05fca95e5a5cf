"""Arguments: those of a call, checked against the annotations of the function before it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, wraps
from inspect import Parameter, signature, unwrap
from typing import Any, TypeVar, cast, get_type_hints

from gradcli.engine.kind import Kind, Unfit, format_value
from gradcli.errors import OptionError, OptionTypeError

F = TypeVar("F", bound=Callable[..., Any])
_ANY = Kind.of(Any)


class Arguments:
    """Those of one function, by its annotations; read when it is first called.

    Attributes:
        function: what is called, or what it wraps; one that has `hints` declares them itself.
        name: as the user knows it.
        decided: the types of calls by position that fit, whatever the values are.
    """

    def __init__(self, name: str, function: Callable[..., object]) -> None:
        self.name = name
        self.function = function
        self.decided: set[tuple[Any, ...]] = set()
        self._looks: dict[tuple[Any, ...], list[tuple[int, Kind]]] = {}

    @cached_property
    def hints(self) -> Mapping[str, Any]:
        """The annotation of each parameter that has one."""
        plain = unwrap(self.function, stop=lambda f: hasattr(f, "hints"))
        return cast(Mapping[str, Any], getattr(plain, "hints", None) or hints_of(plain))

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """What each parameter may be; anything, where nothing is declared."""
        return {
            p.name: Kind.of(self.hints.get(p.name, Any))
            for p in signature(self.function).parameters.values()
            if p.kind is not p.VAR_KEYWORD
        }

    @cached_property
    def _by_position(self) -> tuple[list[str], str | None]:
        """The parameters that take one argument by position each, and the one that takes more."""
        single = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        parameters = signature(self.function).parameters.values()
        more = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
        return [p.name for p in parameters if p.kind in single], more[0] if more else None

    def convert(
        self, args: tuple[object, ...], keywords: dict[str, object]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call, converted; refuses the first that does not fit its annotation.

        For the types of positional arguments it remembers which need converting: mostly none.
        """
        key = tuple(map(type, args))
        looks = self._looks.get(key)
        if looks is None:
            looks = self._looks[key] = self._undecided(args)
            if not looks:
                self.decided.add(key)
        try:
            for i, kind in looks:
                if kind.convert(args[i]) is not args[i]:
                    return self._converted(args, keywords)
            for name, value in keywords.items():
                kind = self.kinds.get(name, _ANY)
                if type(value) not in kind.quick and kind.convert(value) is not value:
                    return self._converted(args, keywords)
        except Unfit:
            return self._converted(args, keywords)
        return args, keywords

    def _undecided(self, args: tuple[object, ...]) -> list[tuple[int, Kind]]:
        """Indices and kinds of the arguments that their type alone does not decide."""
        kinds = [self.kinds.get(name, _ANY) for name in self._names(len(args))]
        return [
            (i, kind)
            for i, (kind, value) in enumerate(zip(kinds, args, strict=True))
            if not kind.decides(type(value))
        ]

    def _converted(
        self, args: tuple[object, ...], keywords: dict[str, object]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, each converted by its kind."""
        positional = [
            self.kinds.get(name, _ANY).convert_argument(self.name, name, value)
            for name, value in zip(self._names(len(args)), args, strict=True)
        ]
        return tuple(positional), {
            name: self.kinds.get(name, _ANY).convert_argument(self.name, name, value)
            for name, value in keywords.items()
        }

    def _names(self, count: int) -> list[str]:
        """The parameters to which so many arguments by position belong; "" for what is too much."""
        names, more = self._by_position
        return [*names[:count], *[more or ""] * (count - len(names))]

    def by_name(self, args: Sequence[object], keywords: Mapping[str, object]) -> dict[str, Any]:
        """The arguments of a call by name, those of `*args` as a tuple."""
        names, more = self._by_position
        values = dict(zip(names, args, strict=False)) | dict(keywords)
        return values if more is None else {**values, more: tuple(args[len(names) :])}


def beyond(function: str, arguments: Mapping[str, object]) -> OptionError | None:
    """The error for a number of more than 64 bits; only a call that failed looks for one."""
    for name, value in arguments.items():
        for number in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(number, int) and not -(2**63) <= number < 2**63:
                return OptionError(
                    f"{function}: {name} must be within 64 bits, got {format_value(number)}"
                )
    return None


def too_large(function: str, arguments: Mapping[str, object]) -> OptionError:
    """The error for a call that raised OverflowError."""
    return beyond(function, arguments) or OptionError(f"{function}: its numbers are too large")


def unpack_list(function: str, name: str, values: tuple[object, ...]) -> tuple[Any, ...]:
    """Values passed one by one or as one list; refuses a mix of both."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        return tuple(values[0])
    for value in values:
        if isinstance(value, (tuple, list)):
            raise OptionTypeError(
                f"{function}: {name} must be given one by one or as one list, got "
                f"{format_value(value)} among {len(values)}"
            )
    return values


def hints_of(function: Callable[..., object]) -> dict[str, Any]:
    """The annotations of a function, as types."""
    return get_type_hints(function, include_extras=True)


def check_arguments(function: F, name: str = "") -> F:
    """Wrap a function so that it refuses arguments that do not fit their annotations.

    Errors begin with `name` where the user calls something else, such as a constructor.
    """
    arguments = Arguments(name or function.__name__, function)
    decided = arguments.decided

    @wraps(function)
    def call(*args: object, **keywords: object) -> Any:
        if keywords or tuple(map(type, args)) not in decided:
            args, keywords = arguments.convert(args, keywords)
        try:
            return function(*args, **keywords)
        except OverflowError:
            raise too_large(arguments.name, arguments.by_name(args, keywords)) from None

    return cast(F, call)


def checked_as(name: str) -> Callable[[F], F]:
    """The same as a decorator of a constructor, which goes by the name of its class."""
    return lambda function: check_arguments(function, name)
