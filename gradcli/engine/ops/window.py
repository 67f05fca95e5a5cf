"""Windows that slide over images: what convolution and pooling share about sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine.array import Array
from gradcli.engine.shape import Shape
from gradcli.errors import OptionError, ShapeError

Pair = int | Sequence[int]


def pair(op: str, name: str, value: Any, least: int = 1) -> tuple[int, int]:
    """A number for both directions, or one each for rows and columns."""
    both = (value, value) if isinstance(value, int) else value
    if isinstance(both, (tuple, list)) and len(both) == 1:
        both = (both[0], both[0])
    whole = isinstance(both, (tuple, list)) and len(both) == 2 and all(_whole(v) for v in both)
    if not whole or min(both) < least or max(both) >= 1 << 31:
        raise OptionError(
            f"{op}: {name} must be a whole number of at least {least}, or a pair of them, "
            f"got {value!r}"
        )
    return both[0], both[1]


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def reach(window: int, dilation: int) -> int:
    """How many pixels a window spans."""
    return dilation * (window - 1) + 1


def images(op: str, x: Array) -> Shape:
    """The shape (N, C, H, W); one image alone, (C, H, W), is a batch of one."""
    if x.ndim not in (3, 4):
        raise ShapeError(f"{op}: input must be (N, C, H, W) or (C, H, W), got shape {x.shape}")
    return x.shape if x.ndim == 4 else (1, *x.shape)


def refuse_empty(op: str, size: tuple[int, int], x: Array, what: str) -> None:
    """An output must have at least one row and one column."""
    if min(size) <= 0:
        raise ShapeError(
            f"{op}: the output would be {size[0]} x {size[1]}; input {x.shape}, {what}; "
            f"use a smaller window or more padding"
        )
