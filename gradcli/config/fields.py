"""The types that YAML has beside the engine's (engine/kind.py), and how each is said in words."""

from __future__ import annotations

import operator
import re
import types
from collections.abc import Callable, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from gradcli.dataclass import dataclass
from gradcli.engine.kind import Bound, Count, NotNegative, Positive, Whole

MAX_INT = 2**31 - 1  # of any whole number with a limit below


@dataclass(frozen=True)
class Limits:
    """What a value must fulfil besides its type, as a note of Annotated that pydantic reads.

    Attributes:
        words: pydantic's, with their values: ge, gt, le, lt, min_length, pattern.
        bound: a test of our own.
    """

    words: tuple[tuple[str, Any], ...] = ()
    bound: Bound | None = None

    def allow(self, value: Any) -> bool:
        """Whether a value of the right type fulfils them."""
        fulfilled = all(_MEANING[word](value, limit) for word, limit in self.words)
        return fulfilled and (self.bound is None or _holds(self.bound, value))

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        schema = handler(source)
        if self.bound is None:
            return schema | dict(self.words)
        test = {"type": "no-info", "function": partial(_fits, self.bound)}
        return {"type": "function-after", "function": test, "schema": schema}


_MEANING: dict[str, Callable[[Any, Any], bool]] = {
    "ge": operator.ge,
    "gt": operator.gt,
    "le": operator.le,
    "lt": operator.lt,
    "min_length": lambda value, length: len(value) >= length,
    "pattern": lambda value, pattern: re.fullmatch(pattern, value) is not None,
}
NOT_EMPTY = Limits((("min_length", 1),))


def matching(pattern: str) -> Limits:
    """Text of a pattern."""
    return Limits((("pattern", pattern),))


Weights = Annotated[tuple[NotNegative, ...], Bound("a list of finite numbers >= 0")]
Percent = Annotated[str, matching(r"^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?)%$")]
StepsOrPercent = Annotated[Whole | Percent, Bound("a number of steps or a share such as 5%")]
Sizes = Annotated[
    Count | tuple[Count, Count],
    Bound("a whole number >= 1, or two of them as [height, width]"),
]
Factors = Annotated[
    Positive | tuple[Positive, Positive],
    Bound("a number > 0, or two of them as [height, width]"),
]
Padding = Annotated[
    Whole | tuple[Whole, Whole] | Literal["same"],
    Bound("a whole number >= 0, two of them as [height, width], or same"),
]
Shape = Annotated[tuple[Count, ...], NOT_EMPTY, Bound("a list of whole numbers >= 1")]
LinePadding = Annotated[Whole | Literal["same"], Bound("a whole number >= 0, or same")]
Border = Annotated[
    Whole | tuple[Whole, Whole] | tuple[Whole, Whole, Whole, Whole],
    Bound("a whole number >= 0, or [left, right] or [left, right, top, bottom]"),
]
Padded = Annotated[
    Whole | tuple[Whole, Whole], Bound("a whole number >= 0, or two of them as [height, width]")
]
Window = Annotated[
    Count | tuple[Count, Count] | Literal["global"],
    Bound("a whole number >= 1, two of them as [height, width], or global"),
]
Units = Annotated[
    Count | Annotated[str, matching(r"^[1-9][0-9]{0,3}x$")],
    Bound("a whole number >= 1, or a multiple of the features such as 4x"),
]
Layers = Annotated[list[Any], Bound("a list of layers")]
Branches = Annotated[list[list[Any]], Bound("a list of lists of layers")]


def in_yaml(hint: Any) -> Any:
    """A type of the engine's as one of YAML's: lists for sequences, numbers finite and 32 bits."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        kind, *notes = inner
        return Annotated[(in_yaml(kind), *(new for old in notes for new in _notes(kind, old)))]
    if origin in (Union, types.UnionType):
        return reduce(operator.or_, map(in_yaml, inner))
    if origin is Sequence:
        return tuple[in_yaml(inner[0]), ...]  # type: ignore[misc]
    if inner and origin is not Literal:
        return origin[tuple(each if each is Ellipsis else in_yaml(each) for each in inner)]
    return hint


def _notes(kind: Any, note: Any) -> list[Any]:
    """What a note of Annotated is in YAML: a bound says its sentence, and pydantic keeps it."""
    if not isinstance(note, Bound) or note.holds is None:
        return [note]
    limits: dict[str, Any] = dict(note.limits)
    if kind is int and "ge" in limits:
        limits = {"le": MAX_INT, **limits}
        most = "2^63 - 1" if limits["le"] == 2**63 - 1 else limits["le"]
        return [
            Limits(tuple(limits.items())),
            Bound(f"a whole number from {limits['ge']} to {most}"),
        ]
    one_end = len(limits) < 2
    description = (
        note.description.replace("a number", "a finite number") if one_end else note.description
    )
    return [Limits(tuple(limits.items()), None if limits else note), Bound(description)]


def _holds(bound: Bound, value: Any) -> bool:
    assert bound.holds is not None
    return bound.holds(value)


def _fits(bound: Bound, value: Any) -> Any:
    if _holds(bound, value):
        return value
    raise ValueError(bound.description)


_WORDS: dict[object, str] = {
    int: "a whole number",
    float: "a finite number",
    bool: "true or false",
    str: "text",
    Path: "a path",
    type(None): "null",
}


def describe_type(hint: Any) -> str:
    """What a field takes, in words: 'a whole number from 1 to 1000000'."""
    if hint in _WORDS:
        return _WORDS[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        texts = [note.description for note in inner[1:] if isinstance(note, Bound)]
        return texts[0] if texts else describe_type(inner[0])
    if origin is Literal:
        return "one of " + ", ".join(
            str(choice) if str(choice).isidentifier() else repr(choice) for choice in inner
        )
    if origin in (Union, types.UnionType):
        return " or ".join(describe_type(choice) for choice in inner)
    return _container(origin or hint, inner)


def _container(origin: Any, inner: tuple[Any, ...]) -> str:
    """Describe lists and maps with the types of their items."""
    if origin in (list, tuple, set, frozenset):
        kinds = [kind for kind in inner if kind is not Ellipsis]
        same = len(set(map(str, kinds))) == 1
        return f"a list (each {describe_type(kinds[0])})" if kinds and same else "a list"
    return "a map"
