"""Layers on images: convolution, pooling, batch normalisation. See layers.py for the form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradcli.config.fields import Count, Padded, Padding, Portion, Positive, Sizes, Window
from gradcli.config.signal import Fitted, Signal, floats, given_input, image
from gradcli.errors import ShapeError

if TYPE_CHECKING:
    from gradcli.engine import nn

Pair = tuple[int, int]


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
    channels, height, width = image(x)
    given_input(in_, channels)
    dividing(groups, channels, out)
    steps, reach = pair(stride), pair(dilation)
    pads = same(pair(kernel), steps, reach) if padding == "same" else pair(padding)
    size = (
        window_size("height", height, pair(kernel)[0], steps[0], pads[0], reach[0]),
        window_size("width", width, pair(kernel)[1], steps[1], pads[1], reach[1]),
    )

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.Conv2d(
            channels,
            out,
            pair(kernel),
            stride=steps,
            padding=pads,
            dilation=reach,
            groups=groups,
            bias=bias,
        )

    weights = out * (channels // groups) * pair(kernel)[0] * pair(kernel)[1]
    return Fitted(x.to(out, *size), weights + (out if bias else 0), make)


def maxpool(
    x: Signal, kernel: Sizes, *, stride: Sizes | None = None, padding: Padded = 0
) -> Fitted:
    """The largest value of each window; windows follow each other unless `stride` says else."""
    output, size, steps, pads = _pool(x, pair(kernel), stride, padding)

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.MaxPool2d(size, stride=steps, padding=pads)

    return Fitted(output, 0, make)


def avgpool(
    x: Signal, kernel: Window, *, stride: Sizes | None = None, padding: Padded = 0
) -> Fitted:
    """The mean of each window; `global` takes whole channels and leaves a row of channels."""
    channels, height, width = image(x)
    whole = kernel == "global"
    if whole and (stride is not None or padding != 0):
        raise ShapeError("a global window has no stride and no padding")
    given = (height, width) if kernel == "global" else pair(kernel)
    output, size, steps, pads = _pool(x, given, stride, padding)

    def make() -> nn.Module:
        from gradcli.engine import nn

        pool = nn.AvgPool2d(size, stride=steps, padding=pads)
        return nn.Sequential(pool, nn.Flatten()) if whole else pool

    return Fitted(x.to(channels) if whole else output, 0, make)


def batchnorm(x: Signal, *, eps: Positive = 1e-5, momentum: Portion = 0.1) -> Fitted:
    """Mean 0 and variance 1 of each channel over the batch; then a learnt scale and shift."""
    if len(floats(x).shape) not in (1, 3):
        raise ShapeError(f"needs features or images (channels x height x width), got {x}")
    flat, channels = len(x.shape) == 1, x.shape[0]

    def make() -> nn.Module:
        from gradcli.engine import nn

        kind = nn.BatchNorm1d if flat else nn.BatchNorm2d
        return kind(channels, eps=eps, momentum=momentum)

    return Fitted(x, 2 * channels, make)


def dividing(groups: int, channels: int, out: int) -> None:
    """The groups of a convolution share out its channels evenly."""
    for what, count in (("input channels", channels), ("out", out)):
        if count % groups:
            raise ShapeError(f"groups {groups} does not divide {what} {count}")


def pair(value: object) -> Pair:
    """One size for both directions, or two."""
    if isinstance(value, tuple):
        height, width = value
        return height, width
    assert isinstance(value, int)
    return value, value


def window_size(what: str, size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1, and at least 1."""
    result = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    if result <= 0:
        spread = f", dilation {dilation}" if dilation > 1 else ""
        raise ShapeError(
            f"the output {what} would be {result}: input {what} {size}, kernel {kernel}, "
            f"stride {stride}, padding {padding}{spread}"
        )
    return result


def _pool(
    x: Signal, kernel: Pair, stride: object, padding: object
) -> tuple[Signal, Pair, Pair, Pair]:
    channels, height, width = image(x)
    steps, pads = kernel if stride is None else pair(stride), pair(padding)
    for size, pad in zip(kernel, pads, strict=True):
        if pad * 2 > size:
            raise ShapeError(f"padding {pad} is more than half of the kernel {size}")
    output = x.to(
        channels,
        window_size("height", height, kernel[0], steps[0], pads[0], 1),
        window_size("width", width, kernel[1], steps[1], pads[1], 1),
    )
    return output, kernel, steps, pads


def same(kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> tuple[int, ...]:
    """The padding that keeps the size in each direction, where one exists."""
    if any(step != 1 for step in stride):
        raise ShapeError(f"padding 'same' needs stride 1, got {'x'.join(map(str, stride))}")
    total = [reach * (size - 1) for size, reach in zip(kernel, dilation, strict=True)]
    if any(pad % 2 for pad in total):
        raise ShapeError(f"padding 'same' needs an odd kernel, got {'x'.join(map(str, kernel))}")
    return tuple(pad // 2 for pad in total)
