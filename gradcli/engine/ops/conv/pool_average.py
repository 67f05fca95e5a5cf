"""Average pooling: the mean of each window of an image or a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.array import Array
from gradcli.engine.op import op
from gradcli.engine.ops.conv.pool import Sizes, in_image, means, own, planes_of, sizes_of
from gradcli.engine.ops.conv.window import Pair, Window
from gradcli.engine.ops.conv.window_composed import averaged
from gradcli.engine.sample import sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError


def _average(
    kind: Window, kernel_size: Pair, stride: Pair | None, padding: Pair, counts: bool, by: Any
) -> Sizes:
    whole = by is None or (isinstance(by, int) and not isinstance(by, bool) and by != 0)
    if not whole:
        raise OptionError(
            f"{kind.op}: divisor_override must be a whole number other than 0, got {by!r}"
        )
    return (*sizes_of(kind, kernel_size, stride, padding, 1), int(counts), by or 0)


def _mean(kind: Window, x: Array, sizes: Sizes, ceil_mode: bool) -> Array:
    return means("avg_pool2d_forward", kind, x, planes_of(kind, x, sizes, ceil_mode), sizes)


def _composed_mean(kind: Window) -> Callable[..., Tensor]:
    def composed(
        input: Tensor,
        *,
        kernel_size: Pair,
        stride: Pair | None = None,
        padding: Pair = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        sizes = _average(kind, kernel_size, stride, padding, count_include_pad, divisor_override)
        before, after = planes_of(kind, input.array, sizes, ceil_mode)
        y: Tensor = averaged(input.reshape(before), after, sizes)
        return y.reshape(own(kind, input.array, after))

    composed.__name__ = "averaged"
    return composed


_IMAGES, _LINES = Window("avg_pool2d", 2), Window("avg_pool1d", 1)


@op(
    composed=_composed_mean(_IMAGES),
    twice="linear",
    samples=[
        sample((2, 3, 6, 4), kernel_size=2),
        sample((1, 2, 7, 5), kernel_size=(3, 2), stride=(2, 1), padding=1),
        sample((2, 5, 6), kernel_size=3, stride=2, padding=1, count_include_pad=False),
        sample((2, 5, 6), kernel_size=3, stride=2, padding=1, ceil_mode=True),
        sample((1, 2, 6, 6), kernel_size=2, divisor_override=3),
        sample((1, 1, 1, 1), kernel_size=1),
        sample((0, 2, 4, 4), kernel_size=2),
    ],
    wrong=[
        wrong(sample((1, 1, 2, 5), kernel_size=4), "the output would be 0 x 1"),
        wrong(sample((1, 1, 5, 5), kernel_size=2, padding=2), "more than half of kernel_size 2"),
        wrong(sample((1, 1, 5, 5), kernel_size=2, stride=(1, 2, 3)), "stride must be"),
        wrong(sample((1, 1, 5, 5), kernel_size=2, divisor_override=0), "divisor_override must be"),
        wrong(
            sample((1, 1, 4, 4), kernel_size=2),
            "must be float32, float64 or bfloat16",
            dtype="int64",
        ),
    ],
    method=False,
)
def avg_pool2d(
    input: Array,
    *,
    kernel_size: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The sum of each window over the number of its pixels."""
    sizes = _average(_IMAGES, kernel_size, stride, padding, count_include_pad, divisor_override)
    return _mean(_IMAGES, input, sizes, ceil_mode)


@avg_pool2d.gradient
def avg_pool2d_gradient(
    grad: Array,
    *,
    kernel_size: Pair,
    stride: Pair | None,
    padding: Pair,
    count_include_pad: bool,
    divisor_override: int | None,
    shapes: tuple[Shape, ...],
) -> Array:
    """The gradient of each window in equal shares to its pixels."""
    sizes = _average(_IMAGES, kernel_size, stride, padding, count_include_pad, divisor_override)
    return in_image("avg_pool2d_backward", _IMAGES, grad, shapes[0], sizes)


@op(
    composed=_composed_mean(_LINES),
    twice="linear",
    samples=[
        sample((2, 3, 6), kernel_size=2),
        sample((1, 2, 7), kernel_size=3, stride=2, padding=1),
        sample((5, 6), kernel_size=3, stride=2, padding=1, count_include_pad=False),
        sample((2, 5, 6), kernel_size=(3,), stride=2, padding=1, ceil_mode=True),
        sample((1, 1, 1), kernel_size=1),
        sample((0, 2, 4), kernel_size=2),
    ],
    wrong=[
        wrong(sample((1, 1, 2), kernel_size=4), "avg_pool1d: the output would be 0; input"),
        wrong(sample((1, 1, 5), kernel_size=2, padding=2), "more than half of kernel_size 2"),
        wrong(sample((1, 1, 5), kernel_size=2, stride=(1, 2)), "avg_pool1d: stride must be"),
        wrong(
            sample((1, 1, 4), kernel_size=2), "must be float32, float64 or bfloat16", dtype="int64"
        ),
    ],
    method=False,
)
def avg_pool1d(
    input: Array,
    *,
    kernel_size: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """The sum of each window over the number of its places."""
    sizes = _average(_LINES, kernel_size, stride, padding, count_include_pad, None)
    return _mean(_LINES, input, sizes, ceil_mode)


@avg_pool1d.gradient
def avg_pool1d_gradient(
    grad: Array,
    *,
    kernel_size: Pair,
    stride: Pair | None,
    padding: Pair,
    count_include_pad: bool,
    shapes: tuple[Shape, ...],
) -> Array:
    """The gradient of each window in equal shares to its places."""
    sizes = _average(_LINES, kernel_size, stride, padding, count_include_pad, None)
    return in_image("avg_pool2d_backward", _LINES, grad, shapes[0], sizes)
