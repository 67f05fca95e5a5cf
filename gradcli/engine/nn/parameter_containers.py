"""Modules that hold parameters: ParameterList and ParameterDict."""

from __future__ import annotations

__all__ = ["ParameterList", "ParameterDict"]

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from gradcli.engine.nn.members import ByName, ByPosition
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, RangeError


def _as_parameter(owner: Module, name: str, value: object) -> Parameter:
    """A tensor becomes a parameter that shares its memory."""
    if isinstance(value, Parameter):
        return value
    if not isinstance(value, Tensor):
        raise DTypeError(f"{type(owner).__name__}: '{name}' is no Tensor: {value!r:.60}")
    return Parameter(value)


def _row(name: str, parameter: Parameter) -> str:
    size = "x".join(str(size) for size in parameter.shape)
    return f"    ({name}): Parameter containing: [{parameter.dtype} of size {size}]"


class ParameterList(ByPosition[Parameter]):
    """Parameters in a list; a tensor becomes a parameter when it enters."""

    _table = "_parameters"

    def __init__(self, values: Iterable[Tensor] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._parameters[self._position(index)]

    def _enter(self, name: str, member: Tensor) -> None:
        self._parameters[name] = _as_parameter(self, name, member)

    def append(self, value: Tensor) -> Self:
        """Put one more at the end."""
        self._enter(str(len(self)), value)
        return self

    def extend(self, values: Iterable[Tensor]) -> Self:
        """Put several at the end."""
        if isinstance(values, Tensor):
            raise DTypeError("ParameterList: extend takes a list of tensors, got one Tensor")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """One row a parameter."""
        return "\n".join(_row(str(i), p) for i, p in enumerate(self))

    def __repr__(self) -> str:
        return _repr(self)


class ParameterDict(ByName[Parameter]):
    """Parameters by name; a tensor becomes a parameter when it enters."""

    _table, _kind = "_parameters", "parameter"

    def __init__(self, parameters: Mapping[str, Tensor] | Iterable[Any] | None = None) -> None:
        super().__init__()
        if parameters is not None:
            self.update(parameters)

    def __setitem__(self, key: str, value: Tensor) -> None:
        parameter = _as_parameter(self, key, value)
        if key in self._parameters:
            self._parameters[key] = parameter
        else:
            self.register_parameter(key, parameter)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._parameters)

    def __or__(self, other: object) -> ParameterDict:
        both = self.copy()
        both.update(other)
        return both

    def __ior__(self, other: object) -> Self:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Another one that holds the same parameters."""
        return ParameterDict(list(self.items()))

    def get(self, key: str, default: object = None) -> Any:
        """The parameter of that name, or `default`."""
        parameter = self._parameters.get(key)
        return default if parameter is None else parameter

    def setdefault(self, key: str, default: Any = None) -> Parameter:
        """The parameter of that name, after entering `default` where there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[str, Parameter]:
        """Take the last one out, with its name."""
        if not self._parameters:
            raise RangeError("ParameterDict: popitem of an empty one")
        key = next(reversed(self._parameters))
        return key, self.pop(key)

    def update(self, parameters: Any) -> None:
        """Enter parameters from a mapping (by name), a ParameterDict or pairs (name, tensor)."""
        if isinstance(parameters, Mapping):
            parameters = sorted(parameters.items())
        self._enter_pairs(parameters.items() if isinstance(parameters, ByName) else parameters)

    def extra_repr(self) -> str:
        """One row a parameter."""
        return "\n".join(_row(key, p) for key, p in self.items())

    def __repr__(self) -> str:
        return _repr(self)


def _repr(module: Module) -> str:
    rows = module.extra_repr()
    name = type(module).__name__
    return f"{name}(\n{rows}\n)" if rows else f"{name}()"
