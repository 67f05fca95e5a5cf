"""The types that constructors name in their signatures, and how each is said in words."""

from __future__ import annotations

import operator
import types
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, Field

from gradcli.engine.kind import Bound

MAX_INT = 2**31 - 1


@dataclass(frozen=True)
class Says:
    """How a field's allowed values are called in a message."""

    text: str


Count = Annotated[int, Field(ge=1, le=MAX_INT), Says(f"a whole number from 1 to {MAX_INT}")]
Whole = Annotated[int, Field(ge=0, le=MAX_INT), Says(f"a whole number from 0 to {MAX_INT}")]
Seed = Annotated[int, Field(ge=0, lt=2**63), Says("a whole number from 0 to 2^63 - 1")]
Batch = Annotated[int, Field(ge=1, le=1_000_000), Says("a whole number from 1 to 1000000")]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False), Says("a finite number >= 0")]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), Says("a finite number > 0")]
Finite = Annotated[float, Field(allow_inf_nan=False), Says("a finite number")]
Share = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False), Says("a number in [0, 1)")]
Portion = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), Says("a number from 0 to 1")]
Weights = Annotated[tuple[NotNegative, ...], Says("a list of finite numbers >= 0")]
Percent = Annotated[str, Field(pattern=r"^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?)%$")]
StepsOrPercent = Annotated[Whole | Percent, Says("a number of steps or a share such as 5%")]
Betas = Annotated[tuple[Share, Share], Says("two numbers, each in [0, 1)")]
Sizes = Annotated[
    Count | tuple[Count, Count],
    Says("a whole number >= 1, or two of them as [height, width]"),
]
Factors = Annotated[
    Positive | tuple[Positive, Positive],
    Says("a number > 0, or two of them as [height, width]"),
]
Padding = Annotated[
    Whole | tuple[Whole, Whole] | Literal["same"],
    Says("a whole number >= 0, two of them as [height, width], or same"),
]
Shape = Annotated[tuple[Count, ...], Field(min_length=1), Says("a list of whole numbers >= 1")]
LinePadding = Annotated[Whole | Literal["same"], Says("a whole number >= 0, or same")]
Border = Annotated[
    Whole | tuple[Whole, Whole] | tuple[Whole, Whole, Whole, Whole],
    Says("a whole number >= 0, or [left, right] or [left, right, top, bottom]"),
]
Padded = Annotated[
    Whole | tuple[Whole, Whole], Says("a whole number >= 0, or two of them as [height, width]")
]
Window = Annotated[
    Count | tuple[Count, Count] | Literal["global"],
    Says("a whole number >= 1, two of them as [height, width], or global"),
]
Units = Annotated[
    Count | Annotated[str, Field(pattern=r"^[1-9][0-9]{0,3}x$")],
    Says("a whole number >= 1, or a multiple of the features such as 4x"),
]
Layers = Annotated[list[Any], Says("a list of layers")]
Branches = Annotated[list[list[Any]], Says("a list of lists of layers")]


def in_yaml(hint: Any) -> Any:
    """A type of the engine's as one of YAML's: lists for sequences, numbers finite and 32 bits."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        bounds = [note for note in inner[1:] if isinstance(note, Bound)]
        return _bounded(inner[0], bounds[0]) if bounds else hint
    if origin in (Union, types.UnionType):
        return reduce(operator.or_, map(in_yaml, inner))
    if origin is Sequence:
        return tuple[in_yaml(inner[0]), ...]  # type: ignore[misc]
    return hint


def _bounded(base: type, bound: Bound) -> Any:
    limits: dict[str, Any] = dict(bound.limits)
    if base is int and "ge" in limits:
        least, most = int(limits["ge"]), int(limits.get("le", MAX_INT))
        says = f"a whole number from {least} to {most}"
        return Annotated[int, Field(ge=least, le=most), Says(says)]
    says = bound.says if "le" in limits else bound.says.replace("a number", "a finite number")
    if limits:
        return Annotated[base, Field(**limits), Says(says)]

    def fits(value: Any) -> Any:
        if bound.holds is None or bound.holds(value):
            return value
        raise ValueError(bound.says)

    return Annotated[base, AfterValidator(fits), Says(says)]


_WORDS: dict[object, str] = {
    int: "a whole number",
    float: "a finite number",
    bool: "true or false",
    str: "text",
    Path: "a path",
    type(None): "null",
}


def expected(hint: Any) -> str:
    """What a field takes, in words: 'a whole number from 1 to 1000000'."""
    if hint in _WORDS:
        return _WORDS[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        said = [note.text for note in inner[1:] if isinstance(note, Says)]
        return said[0] if said else expected(inner[0])
    if origin is Literal:
        return "one of " + ", ".join(
            str(choice) if str(choice).isidentifier() else repr(choice) for choice in inner
        )
    if origin in (Union, types.UnionType):
        return " or ".join(expected(choice) for choice in inner)
    return _container(origin or hint, inner)


def _container(origin: Any, inner: tuple[Any, ...]) -> str:
    """Lists and maps, with what they hold."""
    if origin in (list, tuple, set, frozenset):
        kinds = [kind for kind in inner if kind is not Ellipsis]
        same = len(set(map(str, kinds))) == 1
        return f"a list (each {expected(kinds[0])})" if kinds and same else "a list"
    return "a map"
