"""Padding layers: lines and images with more around them."""

from __future__ import annotations

__all__ = [
    "ConstantPad1d",
    "ConstantPad2d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "CircularPad1d",
    "CircularPad2d",
]

from collections.abc import Sequence
from typing import ClassVar

from gradcli.engine.nn import functional as F
from gradcli.engine.nn.module import Module
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError

Padding = int | Sequence[int]


class _Pad(Module):
    """What F.pad adds on each side: left, right and, for images, top, bottom."""

    dims: ClassVar[int]
    mode: ClassVar[str] = "constant"
    _repr_format = "{0.padding}"

    def __init__(self, padding: Padding) -> None:
        super().__init__()
        sides = 2 * self.dims
        numbers = (padding,) * sides if isinstance(padding, int) else tuple(padding)
        if len(numbers) != sides:
            name = type(self).__name__
            raise OptionError(f"{name}: padding is a number or {sides} of them, got {padding!r}")
        self.padding = numbers

    def forward(self, input: Tensor) -> Tensor:
        """The input with more around it."""
        return F.pad(input, self.padding, self.mode)


class _ConstantPad(_Pad):
    """One value on each side."""

    _repr_format = "padding={0.padding}, value={0.value}"

    def __init__(self, padding: Padding, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """The input with the value around it."""
        return F.pad(input, self.padding, self.mode, self.value)


class ConstantPad1d(_ConstantPad):
    """One value in front of lines and behind them."""

    dims = 1


class ConstantPad2d(_ConstantPad):
    """One value around images."""

    dims = 2


class ZeroPad1d(ConstantPad1d):
    """Zeros in front of lines and behind them."""

    _repr_format = _Pad._repr_format

    def __init__(self, padding: Padding) -> None:
        super().__init__(padding, 0.0)


class ZeroPad2d(ConstantPad2d):
    """Zeros around images."""

    _repr_format = _Pad._repr_format

    def __init__(self, padding: Padding) -> None:
        super().__init__(padding, 0.0)


class ReflectionPad1d(_Pad):
    """Lines mirrored at their ends, which are not repeated."""

    dims, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Images mirrored at their edges, which are not repeated."""

    dims, mode = 2, "reflect"


class ReplicationPad1d(_Pad):
    """The ends of lines, repeated."""

    dims, mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """The edges of images, repeated."""

    dims, mode = 2, "replicate"


class CircularPad1d(_Pad):
    """Lines that begin anew where they end."""

    dims, mode = 1, "circular"


class CircularPad2d(_Pad):
    """Images that begin anew where they end."""

    dims, mode = 2, "circular"
