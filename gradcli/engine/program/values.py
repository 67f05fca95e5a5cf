"""Tensors nested in tuples, lists and dicts: flattened into a list, and put back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

from gradcli.engine.tensor import Tensor
from gradcli.errors import CaptureError

Pattern = Any  # the value with a TensorIndex for each tensor


class TensorIndex(int):
    """The index of a tensor in the flat list."""

    def __repr__(self) -> str:
        return "<tensor>"


def leaves(value: object) -> tuple[Pattern, list[Tensor]]:
    """The pattern of a value, and its tensors in order."""
    tensors: list[Tensor] = []
    return _pattern(value, tensors), tensors


def _pattern(value: Any, tensors: list[Tensor]) -> Pattern:
    if isinstance(value, Tensor):
        tensors.append(value)
        return TensorIndex(len(tensors) - 1)
    if isinstance(value, dict):
        return {key: _pattern(item, tensors) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_pattern(item, tensors) for item in value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise CaptureError(
        f"capture: the step returns {type(value).__name__}; it can return tensors, plain values "
        "that never change, and tuples, lists and dicts of these"
    )


def map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The value with `change` applied to its tensors; all else stays as it is."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: map_tensors(item, change) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(map_tensors(item, change) for item in value)
    return value


def same(a: Any, b: Any) -> bool:
    """True where plain values cannot be told apart: of one type, zeros of one sign, both NaN."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(same, a.values(), b.values()))
    if isinstance(a, float):
        return repr(a) == repr(b)
    return isinstance(a, (int, str, bytes, complex, MethodType)) and bool(a == b)


def rebuild(pattern: Pattern, tensors: Sequence[Tensor]) -> Any:
    """The value of a pattern with other tensors."""
    if isinstance(pattern, TensorIndex):
        return tensors[pattern]
    if isinstance(pattern, dict):
        return {key: rebuild(item, tensors) for key, item in pattern.items()}
    if isinstance(pattern, (tuple, list)):
        return type(pattern)(rebuild(item, tensors) for item in pattern)
    return pattern
