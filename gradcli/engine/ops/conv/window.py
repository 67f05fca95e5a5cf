"""Windows that slide over images and lines: what convolution and pooling share about sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
            f"got {value!r:.60}"
        )
    return both[0], both[1]


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def reach(window: int, dilation: int) -> int:
    """How many pixels a window spans."""
    return dilation * (window - 1) + 1


@dataclass(frozen=True)
class Window:
    """An op whose windows slide along one direction or two.

    A line (N, C, L) is an image (N, C, 1, L) to the kernels: what an option says of its one row is
    that nothing happens there.
    """

    op: str
    dims: int  # 1 or 2

    def pair(self, name: str, value: Any, least: int = 1) -> tuple[int, int]:
        """An option for rows and columns, from one number for all directions or one for each."""
        if self.dims == 2:
            return pair(self.op, name, value, least)
        one = value[0] if isinstance(value, (tuple, list)) and len(value) == 1 else value
        if not _whole(one) or not least <= one < 1 << 31:
            raise OptionError(
                f"{self.op}: {name} must be a whole number of at least {least}, got {value!r:.60}"
            )
        return least, one

    def images(self, x: Array) -> Shape:
        """The shape (N, C, H, W); a sample alone is a batch of one."""
        if x.ndim not in (self.dims + 1, self.dims + 2):
            sizes = "L" if self.dims == 1 else "H, W"
            raise ShapeError(
                f"{self.op}: input must be (N, C, {sizes}) or (C, {sizes}), got shape {x.shape}"
            )
        shape = x.shape if x.ndim == self.dims + 2 else (1, *x.shape)
        return self.image(shape)

    def image(self, shape: Shape) -> Shape:
        """(..., L) as (..., 1, L); an image's shape as it is."""
        return shape if self.dims == 2 else (*shape[:-1], 1, shape[-1])

    def own(self, shape: Shape, x: Array) -> Shape:
        """(N, C, H, W) in as many dimensions as the input `x` has."""
        shape = shape if self.dims == 2 else (*shape[:2], shape[3])
        return shape if x.ndim == self.dims + 2 else shape[1:]

    def refuse_empty(self, size: tuple[int, int], x: Array, what: str) -> None:
        """An output must have at least one row and one column."""
        if min(size) <= 0:
            shown = " x ".join(str(n) for n in size[2 - self.dims :])
            raise ShapeError(
                f"{self.op}: the output would be {shown}; input {x.shape}, {what}; "
                f"use a smaller window or more padding"
            )
