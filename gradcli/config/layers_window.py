"""Layers whose windows slide over lines and images: convolutions and pooling. See layers.py."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradcli.config.fields import LinePadding, Padded, Padding, Sizes, Window
from gradcli.config.signal import Fitted, Signal, given_input, image, line
from gradcli.engine.kind import Count, Whole
from gradcli.errors import ShapeError

if TYPE_CHECKING:
    from gradcli.engine import nn

Pair = tuple[int, int]
Each = tuple[int, ...]  # a number for each direction
_DIRECTIONS = {1: ("length",), 2: ("height", "width")}


@dataclass(frozen=True)
class _Filters:
    """What a convolution has beside its window: outputs, groups, a bias, the input as written."""

    out: int
    groups: int
    bias: bool
    given: int | None

    def parameters(self, channels: int, kernel: Each) -> int:
        """How many numbers they are; refuses groups that do not share out the channels evenly."""
        given_input(self.given, channels)
        for what, count in (("input channels", channels), ("out", self.out)):
            if count % self.groups:
                raise ShapeError(f"groups {self.groups} does not divide {what} {count}")
        weights = self.out * (channels // self.groups) * math.prod(kernel)
        return weights + (self.out if self.bias else 0)


def conv(
    x: Signal,
    out: Count,
    kernel: Sizes,
    *,
    stride: Sizes = 1,
    padding: Padding = 0,
    dilation: Sizes = 1,
    groups: Count = 1,
    bias: bool = True,
    in_: Count | None = None,
) -> Fitted:
    """Each output pixel is a weighted sum over a window of all input channels."""
    pads = None if padding == "same" else pair(padding)
    filters = _Filters(out, groups, bias, in_)
    return _straight(x, image(x), filters, pair(kernel), pair(stride), pads, pair(dilation))


def conv1d(
    x: Signal,
    out: Count,
    kernel: Count,
    *,
    stride: Count = 1,
    padding: LinePadding = 0,
    dilation: Count = 1,
    groups: Count = 1,
    bias: bool = True,
    in_: Count | None = None,
) -> Fitted:
    """Each output is a weighted sum over a window of all input channels."""
    pads = None if padding == "same" else (padding,)
    filters = _Filters(out, groups, bias, in_)
    return _straight(x, line(x), filters, (kernel,), (stride,), pads, (dilation,))


def conv_transpose(
    x: Signal,
    out: Count,
    kernel: Sizes,
    *,
    stride: Sizes = 1,
    padding: Padded = 0,
    output_padding: Padded = 0,
    dilation: Sizes = 1,
    groups: Count = 1,
    bias: bool = True,
    in_: Count | None = None,
) -> Fitted:
    """Each pixel times each filter, laid `stride` apart and summed: images become larger."""
    filters = _Filters(out, groups, bias, in_)
    window = pair(kernel), pair(stride), pair(padding), pair(output_padding), pair(dilation)
    return _transposed(x, image(x), filters, *window)


def conv1d_transpose(
    x: Signal,
    out: Count,
    kernel: Count,
    *,
    stride: Count = 1,
    padding: Whole = 0,
    output_padding: Whole = 0,
    dilation: Count = 1,
    groups: Count = 1,
    bias: bool = True,
    in_: Count | None = None,
) -> Fitted:
    """Each number times each filter, laid `stride` apart and summed."""
    filters = _Filters(out, groups, bias, in_)
    window = (kernel,), (stride,), (padding,), (output_padding,), (dilation,)
    return _transposed(x, line(x), filters, *window)


def maxpool(
    x: Signal, kernel: Sizes, *, stride: Sizes | None = None, padding: Padded = 0
) -> Fitted:
    """The largest value of each window; windows follow each other unless `stride` says else."""
    return _pool("MaxPool2d", x, image(x), pair(kernel), pair(stride or kernel), pair(padding))


def maxpool1d(
    x: Signal, kernel: Count, *, stride: Count | None = None, padding: Whole = 0
) -> Fitted:
    """The largest value of each window; windows follow each other unless `stride` says else."""
    return _pool("MaxPool1d", x, line(x), (kernel,), (stride or kernel,), (padding,))


def avgpool(
    x: Signal, kernel: Window, *, stride: Sizes | None = None, padding: Padded = 0
) -> Fitted:
    """The mean of each window; `global` takes whole channels and leaves a row of channels."""
    channels, *sizes = places = image(x)
    if kernel != "global":
        return _pool("AvgPool2d", x, places, pair(kernel), pair(stride or kernel), pair(padding))
    if stride is not None or padding != 0:
        raise ShapeError("a global window has no stride and no padding")

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.Sequential(nn.AvgPool2d(tuple(sizes)), nn.Flatten())

    return Fitted(x.to(channels), 0, make)


def avgpool1d(
    x: Signal, kernel: Count, *, stride: Count | None = None, padding: Whole = 0
) -> Fitted:
    """The mean of each window; windows follow each other unless `stride` says else."""
    return _pool("AvgPool1d", x, line(x), (kernel,), (stride or kernel,), (padding,))


def pair(value: object) -> Pair:
    """One size for both directions, or two."""
    if isinstance(value, tuple):
        height, width = value
        return height, width
    assert isinstance(value, int)
    return value, value


def _straight(
    x: Signal,
    places: Each,
    filters: _Filters,
    kernel: Each,
    stride: Each,
    padding: Each | None,
    dilation: Each,
) -> Fitted:
    """A convolution over (channels, ...); without `padding` the size stays."""
    channels = places[0]
    parameters = filters.parameters(channels, kernel)
    pads = _same(kernel, stride, dilation) if padding is None else padding
    size = _windows(places, kernel, stride, pads, dilation)

    def make() -> nn.Module:
        from gradcli.engine import nn

        kind = nn.Conv1d if len(kernel) == 1 else nn.Conv2d
        options = stride, pads, dilation, filters.groups, filters.bias
        return kind(channels, filters.out, kernel, *options)

    return Fitted(x.to(filters.out, *size), parameters, make)


def _transposed(
    x: Signal,
    places: Each,
    filters: _Filters,
    kernel: Each,
    stride: Each,
    padding: Each,
    more: Each,
    dilation: Each,
) -> Fitted:
    channels, *sizes = places
    parameters = filters.parameters(channels, kernel)
    every = zip(
        _DIRECTIONS[len(sizes)], sizes, kernel, stride, padding, more, dilation, strict=True
    )
    size = [_spread(*one) for one in every]

    def make() -> nn.Module:
        from gradcli.engine import nn

        kind = nn.ConvTranspose1d if len(kernel) == 1 else nn.ConvTranspose2d
        options = stride, padding, more, filters.groups, filters.bias, dilation
        return kind(channels, filters.out, kernel, *options)

    return Fitted(x.to(filters.out, *size), parameters, make)


def _pool(kind: str, x: Signal, places: Each, kernel: Each, stride: Each, padding: Each) -> Fitted:
    for size, pad in zip(kernel, padding, strict=True):
        if pad * 2 > size:
            raise ShapeError(f"padding {pad} is more than half of the kernel {size}")
    output = x.to(places[0], *_windows(places, kernel, stride, padding, (1,) * len(kernel)))

    def make() -> nn.Module:
        from gradcli.engine import nn

        module: nn.Module = getattr(nn, kind)(kernel, stride=stride, padding=padding)
        return module

    return Fitted(output, 0, make)


def _windows(places: Each, kernel: Each, stride: Each, padding: Each, dilation: Each) -> list[int]:
    """How many windows there are in each direction."""
    _, *sizes = places
    every = zip(_DIRECTIONS[len(sizes)], sizes, kernel, stride, padding, dilation, strict=True)
    return [_window(*one) for one in every]


def _window(what: str, size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1, and at least 1."""
    result = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    if result <= 0:
        spread = f", dilation {dilation}" if dilation > 1 else ""
        raise ShapeError(
            f"the output {what} would be {result}: input {what} {size}, kernel {kernel}, "
            f"stride {stride}, padding {padding}{spread}"
        )
    return result


def _spread(
    what: str, size: int, kernel: int, stride: int, padding: int, more: int, dilation: int
) -> int:
    """(size - 1) stride - 2 padding + dilation (kernel - 1) + more + 1, and at least 1."""
    if more >= max(stride, dilation):
        raise ShapeError(
            f"output_padding {more} must be below the larger of stride {stride} and "
            f"dilation {dilation}"
        )
    result = (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + more + 1
    if result <= 0:
        raise ShapeError(
            f"the output {what} would be {result}: input {what} {size}, kernel {kernel}, "
            f"stride {stride}, padding {padding}"
        )
    return result


def _same(kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Each:
    """The padding that keeps the size in each direction, where one exists."""
    if any(step != 1 for step in stride):
        raise ShapeError(f"padding 'same' needs stride 1, got {'x'.join(map(str, stride))}")
    total = [reach * (size - 1) for size, reach in zip(kernel, dilation, strict=True)]
    if any(pad % 2 for pad in total):
        raise ShapeError(f"padding 'same' needs an odd kernel, got {'x'.join(map(str, kernel))}")
    return tuple(pad // 2 for pad in total)
