"""Layers on lines (channels x length), and transposed convolutions. See layers.py for the form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradcli.config.fields import Count, LinePadding, Padded, Sizes, Whole
from gradcli.config.layers_image import dividing, pair, same, window_size
from gradcli.config.signal import Fitted, Signal, floats, given_input, image
from gradcli.errors import ShapeError

if TYPE_CHECKING:
    from gradcli.engine import nn


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
    channels, length = line(x)
    given_input(in_, channels)
    dividing(groups, channels, out)
    pad = same([kernel], [stride], [dilation])[0] if padding == "same" else padding
    size = window_size("length", length, kernel, stride, pad, dilation)

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.Conv1d(channels, out, kernel, stride, pad, dilation, groups, bias)

    weights = out * (channels // groups) * kernel
    return Fitted(x.to(out, size), weights + (out if bias else 0), make)


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
    channels, length = line(x)
    given_input(in_, channels)
    dividing(groups, channels, out)
    size = _spread("length", length, kernel, stride, padding, output_padding, dilation)

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.ConvTranspose1d(
            channels, out, kernel, stride, padding, output_padding, groups, bias, dilation
        )

    weights = channels * (out // groups) * kernel
    return Fitted(x.to(out, size), weights + (out if bias else 0), make)


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
    channels, height, width = image(x)
    given_input(in_, channels)
    dividing(groups, channels, out)
    window, steps, pads = pair(kernel), pair(stride), pair(padding)
    more, reach = pair(output_padding), pair(dilation)
    size = (
        _spread("height", height, window[0], steps[0], pads[0], more[0], reach[0]),
        _spread("width", width, window[1], steps[1], pads[1], more[1], reach[1]),
    )

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.ConvTranspose2d(channels, out, window, steps, pads, more, groups, bias, reach)

    weights = channels * (out // groups) * window[0] * window[1]
    return Fitted(x.to(out, *size), weights + (out if bias else 0), make)


def maxpool1d(
    x: Signal, kernel: Count, *, stride: Count | None = None, padding: Whole = 0
) -> Fitted:
    """The largest value of each window; windows follow each other unless `stride` says else."""
    output, step = _pool(x, kernel, stride, padding)

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.MaxPool1d(kernel, stride=step, padding=padding)

    return Fitted(output, 0, make)


def avgpool1d(
    x: Signal, kernel: Count, *, stride: Count | None = None, padding: Whole = 0
) -> Fitted:
    """The mean of each window; windows follow each other unless `stride` says else."""
    output, step = _pool(x, kernel, stride, padding)

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.AvgPool1d(kernel, stride=step, padding=padding)

    return Fitted(output, 0, make)


def line(x: Signal) -> tuple[int, int]:
    """Channels and length."""
    if len(floats(x).shape) != 2:
        raise ShapeError(f"needs lines (channels x length), got {x}")
    channels, length = x.shape
    return channels, length


def _pool(x: Signal, kernel: int, stride: int | None, padding: int) -> tuple[Signal, int]:
    channels, length = line(x)
    if padding * 2 > kernel:
        raise ShapeError(f"padding {padding} is more than half of the kernel {kernel}")
    step = kernel if stride is None else stride
    return x.to(channels, window_size("length", length, kernel, step, padding, 1)), step


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
