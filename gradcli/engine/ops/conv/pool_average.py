"""Average pooling: the mean of each window of an image or a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.engine.array import Array
from gradcli.engine.op import Op, op
from gradcli.engine.ops.along import floats
from gradcli.engine.ops.conv import window_decomposition
from gradcli.engine.ops.conv.cases import samples_in, wrong_in
from gradcli.engine.ops.conv.geometry import Geometry, PerDim, Space
from gradcli.engine.ops.conv.pool import Sizes, plan, run_backward, run_forward, sizes_of
from gradcli.engine.sample import Sample, Wrong, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError

_LINES, _IMAGES = Space("avg_pool1d", 1), Space("avg_pool2d", 2)


def _plan(
    space: Space,
    x: Shape,
    kernel_size: PerDim,
    stride: PerDim | None,
    padding: PerDim,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> tuple[Geometry, Shape, Sizes]:
    by = divisor_override
    if by == 0:
        raise OptionError(
            f"{space.name}: divisor_override must be a whole number other than 0, got {by!r}"
        )
    geometry, counts = plan(space, x, kernel_size, stride, padding, 1, ceil_mode)
    return geometry, counts, (*sizes_of(geometry), int(count_include_pad), by or 0)


def _mean(space: Space, x: Array, plan: tuple[Geometry, Shape, Sizes]) -> Array:
    return run_forward("avg_pool2d_forward", space, floats(space.name, x), plan[1], plan[2])[0]


_SAMPLES = [
    sample((2, 3, 6, 4), kernel_size=2),
    sample((1, 2, 7, 5), kernel_size=(3, 2), stride=(2, 1), padding=1),
    sample((2, 5, 6), kernel_size=3, stride=2, padding=1, count_include_pad=False),
    sample((2, 5, 6), kernel_size=3, stride=2, padding=1, ceil_mode=True),
    sample((1, 1, 1, 1), kernel_size=1),
]
_WRONG = [
    wrong(sample((1, 1, 5, 2), kernel_size=4), "the output would be 1 x 0"),
    wrong(sample((1, 1, 5, 5), kernel_size=2, padding=2), "more than half of kernel_size 2"),
    wrong(sample((1, 1, 5, 5), kernel_size=2, stride=(1, 2, 3)), "stride must be"),
]


def _avg_pool(
    space: Space, samples: Sequence[Sample] = (), wrong: Sequence[Wrong] = ()
) -> Callable[[Callable[..., Array]], Op[Tensor]]:
    """Declare what both have in common below a forward function."""

    def declare(forward: Callable[..., Array]) -> Op[Tensor]:
        def means(input: Tensor, **options: Any) -> Tensor:
            options = {**pool.options, **options}
            geometry, counts, (*_, padded, by) = _plan(space, input.shape, **options)
            return window_decomposition.means(input, geometry, counts, bool(padded), by)

        declaration = op(
            decomposition=means,
            double_backward="linear",
            samples=[*samples_in(space.dims, _SAMPLES), *samples],
            wrong=[*wrong_in(space.dims, _WRONG), *wrong],
            method=False,
        )
        pool = declaration(forward)

        @pool.gradient
        def gradient(grad: Array, *, shapes: tuple[Shape, ...], **options: Any) -> Array:
            """The gradient of each window in equal shares to its elements."""
            _, _, sizes = _plan(space, shapes[0], **options)
            return run_backward("avg_pool2d_backward", space, grad, shapes[0], sizes)

        return pool

    return declare


@_avg_pool(
    _IMAGES,
    samples=[sample((1, 2, 6, 6), kernel_size=2, divisor_override=3)],
    wrong=[wrong(sample((1, 1, 5, 5), kernel_size=2, divisor_override=0), "divisor_override must")],
)
def avg_pool2d(
    input: Array,
    *,
    kernel_size: PerDim,
    stride: PerDim | None = None,
    padding: PerDim = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """The sum of each window over the number of its pixels."""
    options = kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    return _mean(_IMAGES, input, _plan(_IMAGES, input.shape, *options))


@_avg_pool(_LINES)
def avg_pool1d(
    input: Array,
    *,
    kernel_size: PerDim,
    stride: PerDim | None = None,
    padding: PerDim = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """The sum of each window over the number of its elements."""
    options = kernel_size, stride, padding, ceil_mode, count_include_pad
    return _mean(_LINES, input, _plan(_LINES, input.shape, *options))
