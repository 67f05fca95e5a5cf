"""What an argument is replaced by, one value for each way to be wrong; and which a type has."""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from gradcli import engine
from gradcli.engine.tensor import Tensor

ANYTHING = (Any, object, inspect.Parameter.empty)


class Index:
    """A whole number of another library, as NumPy's are."""

    def __index__(self) -> int:
        return 2

    def __repr__(self) -> str:
        return "Index()"


class Real:
    """A number with a point of another library."""

    def __float__(self) -> float:
        return 0.5

    def __repr__(self) -> str:
        return "Real()"


def foreign_numbers() -> list[Any]:
    """NumPy's own, where it is installed."""
    try:
        import numpy
    except ImportError:
        return []
    return [numpy.float32(0.5), numpy.float64(2.0), numpy.int64(2), numpy.bool_(True)]


def plain_values() -> list[Any]:
    """Everything but tensors; made anew, because some can be changed."""
    whole = [-1, 0, 1, 2, 7, -(2**31), 2**31, 2**40, 2**62, 2**63, -(2**63), 2**200]
    real = [0.5, 2.0, -1.5, 1e308, 5e-324, math.nan, math.inf, -math.inf]
    text = ["x", "False", "", "mean", "2", b"x", "\N{SNOWMAN}" * 1000]
    lists = [[], (), [1], (1, 2), [2, 2, 2], [-1], [0.5], ["x"], [None], (1,) * 100, {}, {"a": 1}]
    lists += [(2**62, 2**62), [[1, 2], [3, 4]], range(3), {1, 2}, (math.nan, 0.5), (True, False)]
    other = [True, False, None, object(), int, abs, print_nothing, Index(), Real(), 1 + 2j]
    other += [slice(None), ..., engine.float64, engine.bool_, NotImplemented, iter([1, 2])]
    return [*whole, *real, *text, *lists, *other, *foreign_numbers()]


def print_nothing(*args: Any, **named: Any) -> None:
    """A function that takes everything and gives nothing."""


def tensor_values() -> list[Tensor]:
    """Tensors where another one, or none, belongs."""
    whole = engine.tensor
    return [
        whole(0.5),
        whole(2),
        whole(True),
        whole([1, 2, 3]),
        whole([-1, 2**62]),
        whole([math.nan, math.inf, -math.inf]),
        engine.zeros(0),
        engine.zeros(2, 0, 3),
        engine.zeros(1, 1, 1, 1, 1, 1, 1, 1),
        engine.zeros(4000),
        engine.zeros(2, 3, dtype=engine.float64),
        engine.zeros(2, 3, dtype=engine.bfloat16),
        engine.zeros(2, 3, dtype=engine.uint8),
        engine.ones(2, 3).t(),
        engine.ones(1).expand(2, 3),
        engine.ones(2, 3).requires_grad_(),
    ]


def changed_tensors(x: Tensor) -> list[Tensor]:
    """The same tensor with one thing about it changed."""
    dtypes = (engine.float32, engine.float64, engine.bfloat16, engine.int32, engine.int64)
    changes = [x.to(dtype) for dtype in (*dtypes, engine.uint8, engine.bool_)]
    changes += [x.unsqueeze(0), x.reshape(-1), x.detach().expand(2, *x.shape)]
    if not x.requires_grad and x.numel():
        changes += [x * -1, x + 2**40, x.clone().fill_(-1)]
    if x.ndim:
        changes += [x[:0], x[0] if x.shape[0] else x, x.transpose(0, -1)]
    return changes


def has(hint: Any, value: Any) -> bool:
    """True when the declared type has this value: written anew here, to judge by."""
    if hint in ANYTHING or isinstance(hint, TypeVar | str):
        return True
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return has(inner[0], value)
    if origin is Literal:
        return any(value is choice or value == choice for choice in inner if _same(choice, value))
    if origin in (Union, types.UnionType):
        return any(has(choice, value) for choice in inner)
    if origin is None:
        return _is(hint, value)
    return _holds(origin, inner, value)


def _same(choice: Any, value: Any) -> bool:
    return type(choice) is type(value)


def _is(hint: Any, value: Any) -> bool:
    """A plain class: a truth value is no number, and a tensor of one number is one."""
    if hint is None or hint is type(None):
        return value is None
    if hint in (bool, int, float):
        return _of_number(hint, value)
    return isinstance(value, hint) if isinstance(hint, type) else True


def _of_number(hint: type, value: Any) -> bool:
    """True and False, whole numbers, or any numbers; also those of other libraries."""
    if isinstance(value, Tensor):
        kinds = {int: ("int",), float: ("int", "float")}.get(hint, ())
        return value.numel() == 1 and value.dtype.kind in kinds
    truth = isinstance(value, bool) or type(value).__name__.startswith("bool")
    if truth or hint is bool:
        return truth and hint is bool
    whole = hasattr(type(value), "__index__")
    return whole if hint is int else whole or hasattr(type(value), "__float__")


def _holds(origin: Any, inner: tuple[Any, ...], value: Any) -> bool:
    """A container, and what it holds."""
    if origin is Callable or origin is type(print_nothing):
        return callable(value)
    if origin is tuple and Ellipsis not in inner:
        right = isinstance(value, tuple | list) and len(value) == len(inner)
        return right and all(has(hint, one) for hint, one in zip(inner, value, strict=True))
    if origin in (Sequence, tuple, list):
        plain = isinstance(value, tuple | list | range)
        return plain and all(has(inner[0], one) for one in value)
    if origin is Iterable:
        return hasattr(type(value), "__iter__")
    if origin is Mapping or origin is dict:
        return isinstance(value, Mapping)
    return isinstance(value, origin) if isinstance(origin, type) else True
