"""Geometry: where the windows of convolution and pooling lie, in one dimension or in several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeGuard

from gradcli.engine import shape as shapes
from gradcli.engine.shape import Shape
from gradcli.errors import OptionError, ShapeError

PerDim = int | Sequence[int]  # one number for all dimensions, or one for each

# The kernels are written for images: what has fewer dimensions is an image of one row to them.
_KERNEL_DIMS = 2


class Geometry(NamedTuple):
    """Where windows lie, a number for each dimension.

    Attributes:
        window: how many elements a window has.
        stride: from the first element of a window to that of the next.
        padding: elements before the input.
        behind: elements after it.
        dilation: from an element of a window to the next.
    """

    window: Shape
    stride: Shape
    padding: Shape
    behind: Shape
    dilation: Shape

    def reach(self) -> Shape:
        """How many elements a window spans, gaps included."""
        rows = zip(self.window, self.dilation, strict=True)
        return tuple([gap * (size - 1) + 1 for size, gap in rows])

    def counts(self, size: Sequence[int], ceil_mode: bool = False) -> Shape:
        """How many windows fit; with ceil_mode also one that begins inside and hangs over."""
        _, stride, padding, behind, _ = self
        rows = zip(size, self.reach(), stride, padding, behind, strict=True)
        if not ceil_mode:
            return tuple([(n + p + b - reach) // s + 1 for n, reach, s, p, b in rows])
        rooms = [(n + p, n + p + b - reach, s) for n, reach, s, p, b in rows]
        counts = [(inside, -(-room // s), s) for inside, room, s in rooms]
        return tuple([count + (count * s < inside) for inside, count, s in counts])

    def spans(self, counts: Sequence[int]) -> Shape:
        """How long an input is that has just room for so many windows."""
        rows = zip(counts, self.reach(), self.stride, self.padding, self.behind, strict=True)
        return tuple([(n - 1) * s - front - behind + k for n, k, s, front, behind in rows])

    def sizes(self) -> tuple[int, ...]:
        """Stride, padding and dilation as sizes of a kernel."""
        _, stride, padding, _, dilation = self
        lacking = _KERNEL_DIMS - len(stride)
        if not lacking:
            return stride + padding + dilation
        unit = (1,) * lacking
        return unit + stride + (0,) * lacking + padding + unit + dilation


def flat(sizes: Shape) -> Shape:
    """As many sizes as a kernel has dimensions: 1 for those that the input lacks."""
    lacking = _KERNEL_DIMS - len(sizes)
    return (1,) * lacking + sizes if lacking else sizes


def image(shape: Shape) -> Shape:
    """(N, C, ...) as kernels see it."""
    lacking = _KERNEL_DIMS + 2 - len(shape)
    return shape[:2] + (1,) * lacking + shape[2:] if lacking else shape


def whole(number: object, least: int) -> TypeGuard[int]:
    """A whole number from `least` on that kernels can count with."""
    return isinstance(number, int) and number is not True and least <= number < 1 << 31


class _Words(NamedTuple):
    """What errors say of so many dimensions."""

    sizes: str  # of an input, behind its channels
    window: str  # the sizes of a filter
    several: str  # one number for each dimension, where that is more than one


_WORDS = {1: _Words("L", "length", ""), 2: _Words("H, W", "rows, columns", "pair")}


class Space(NamedTuple):
    """An op or layer by name, and the number of dimensions that its windows slide along."""

    name: str
    dims: int

    @property
    def words(self) -> _Words:
        """What errors say of these dimensions."""
        return _WORDS[self.dims]

    def numbers(self, option: str, value: object, least: int = 1) -> Shape:
        """An option for each dimension, from one number for all of them or one for each."""
        if type(value) is int and least <= value < 1 << 31:
            return (value,) * self.dims
        numbers = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        numbers = numbers * self.dims if len(numbers) == 1 else numbers
        if len(numbers) != self.dims or not all(whole(n, least) for n in numbers):
            either = f", or a {self.words.several} of them" if self.words.several else ""
            raise OptionError(
                f"{self.name}: {option} must be a whole number of at least {least}{either}, "
                f"got {value!r:.60}"
            )
        return numbers

    def geometry(
        self, window: Shape, stride: PerDim, padding: PerDim | str, dilation: PerDim
    ) -> Geometry:
        """Where windows of this size lie; `padding` may be "valid" or "same"."""
        step, gap = self.numbers("stride", stride), self.numbers("dilation", dilation)
        if not isinstance(padding, str):
            front = self.numbers("padding", padding, 0)
            return Geometry(window, step, front, front, gap)
        none = (0,) * self.dims
        plain = Geometry(window, step, none, none, gap)
        if padding == "valid":
            return plain
        if padding != "same":
            several = self.words.several
            numbers = f"a number or a {several}" if several else "or a number"
            raise OptionError(
                f"{self.name}: padding must be 'same', 'valid', {numbers}, got {padding!r:.60}"
            )
        if any(number != 1 for number in step):
            number = step if self.dims > 1 else step[0]
            raise OptionError(f"{self.name}: padding 'same' needs stride 1, got {number}")
        front = tuple([(reach - 1) // 2 for reach in plain.reach()])
        behind = tuple([reach // 2 for reach in plain.reach()])
        return Geometry(window, step, front, behind, gap)

    def batched(self, shape: Shape) -> Shape:
        """The shape (N, C, ...) of an input; a sample alone is a batch of one."""
        if len(shape) == self.dims + 1:
            return (1, *shape)
        if len(shape) != self.dims + 2:
            sizes = self.words.sizes
            raise ShapeError(
                f"{self.name}: input must be (N, C, {sizes}) or (C, {sizes}), got shape {shape}"
            )
        return shape

    def narrow(self, shape: Shape) -> Shape:
        """(N, C, ...) of a kernel in the dimensions of the op."""
        return shape if self.dims == _KERNEL_DIMS else shape[:2] + shape[-self.dims :]

    def own(self, shape: Shape, x: Shape) -> Shape:
        """The same in as many dimensions as the input `x` has, which may be without a batch."""
        shape = self.narrow(shape)
        return shape if len(shape) == len(x) else shape[1:]

    def planes(self, shape: Shape) -> Shape:
        """(..., sizes) as the kernels of pooling see it, with one dimension in front."""
        return (shapes.numel(shape[: -self.dims]), *flat(shape[-self.dims :]))

    def refuse_empty(self, counts: Shape, x: Shape, what: str) -> None:
        """An output must have at least one element in each dimension."""
        if min(counts) <= 0:
            raise ShapeError(
                f"{self.name}: the output would be {' x '.join(map(str, counts))}; "
                f"input {x}, {what}; use a smaller window or more padding"
            )
