"""Transposed convolution: the gradient of a convolution's image, used as a layer of its own."""

from __future__ import annotations

from typing import Any

from gradcli.engine.array import Array
from gradcli.engine.op import Op, op
from gradcli.engine.ops.along import floats, match
from gradcli.engine.ops.conv import window_decomposition
from gradcli.engine.ops.conv.cases import samples_in, wrong_in
from gradcli.engine.ops.conv.conv import (
    ConvShapes,
    check_bias,
    check_filters,
    check_groups,
    grad_bias,
)
from gradcli.engine.ops.conv.geometry import PerDim, Space, flat, image
from gradcli.engine.ops.elementwise.family import map_binary
from gradcli.engine.sample import none, sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError
from gradcli.wording import quantity


def _check(space: Space, x: Array, weight: Array, bias: Array | None, groups: int) -> None:
    floats(space.name, x)
    match(space.name, x, weight=weight, bias=bias)
    check_groups(space, groups)
    check_filters(space, weight, "channels, filters / groups")
    channels = space.batched(x.shape)[1]
    if channels != weight.shape[0] or channels % groups:
        raise ShapeError(
            f"{space.name}: input has {quantity(channels, 'channel')}, which must be those of the "
            "weight and "
            f"divide into {quantity(groups, 'group')}; input {x.shape}, weight {weight.shape}"
        )
    check_bias(space, bias, weight.shape[1] * groups, weight)


def _plan(
    space: Space,
    x: Array,
    weight: Array,
    stride: PerDim,
    padding: PerDim,
    output_padding: PerDim,
    groups: int,
    dilation: PerDim,
) -> ConvShapes:
    """That of the convolution from the output to `x`."""
    geometry = space.geometry(weight.shape[2:], stride, padding, dilation)
    more = space.numbers("output_padding", output_padding, 0)
    rows = zip(more, geometry.stride, geometry.dilation, strict=True)
    if any(m and m >= max(s, d) for m, s, d in rows):
        raise OptionError(
            f"{space.name}: output_padding {output_padding} must be smaller than stride {stride} "
            f"or dilation {dilation}"
        )
    maps = space.batched(x.shape)
    size = tuple([n + m for n, m in zip(geometry.spans(maps[2:]), more, strict=True)])
    space.refuse_empty(size, x.shape, f"weight {weight.shape}, padding {padding!r}")
    images = (maps[0], weight.shape[1] * groups, *flat(size))
    sizes = (*geometry.sizes(), groups)
    return ConvShapes(images, image(maps), image(weight.shape), sizes, geometry)


_SAMPLES = [
    sample((2, 3, 4, 5), (3, 4, 3, 3), (4,)),
    sample((2, 1, 3, 4), (1, 3, 2, 3), none(), stride=2, padding=1),
    sample((1, 4, 3, 2), (4, 3, 3, 1), (6,), stride=(2, 3), padding=(0, 1), groups=2,
           output_padding=(1, 2)),
    sample((2, 2, 3, 4), (2, 2, 3, 2), (2,), dilation=(2, 3), output_padding=(1, 2)),
    sample((3, 4, 4), (3, 1, 3, 3), none(), padding=1, groups=3),
    sample((1, 1, 1, 1), (1, 1, 1, 1), (1,)),
    sample((0, 2, 5, 5), (2, 3, 3, 3), (3,)),
    sample((1, 2, 3, 4), (2, 0, 2, 2), (0,)),
]  # fmt: skip
_WRONG = [
    wrong(sample((2, 3, 5, 5), (4, 3, 3, 3), none()), "input has 3 channels, which must be"),
    wrong(sample((2, 3, 5, 5), (3, 3, 3, 3), none(), groups=2), "divide into 2 groups"),
    wrong(sample((2, 3, 5, 5), (3, 4, 3, 3), (3,)), "conv_transpose2d: bias (3,) does not fit"),
    wrong(sample((1, 1, 5, 2), (1, 1, 2, 2), none(), padding=2), "the output would be 2 x -1"),
    wrong(sample((5, 5), (1, 1, 3, 3), none()), "input must be (N, C, H, W) or (C, H, W)"),
    wrong(sample((1, 3, 5, 5), (3, 3, 3), none()), "weight must be (channels, filters"),
    wrong(sample((1, 2, 5, 5), (2, 1, 3, 3), none(), groups=0), "groups must be"),
    wrong(sample((1, 1, 5, 5), (1, 1, 3, 3), none(), stride=0), "stride must be"),
    wrong(sample((1, 1, 5, 5), (1, 1, 3, 3), none(), output_padding=1), "must be smaller than"),
]


def _conv_transpose(dims: int) -> Op[Tensor]:
    space = Space(f"conv_transpose{dims}d", dims)

    def overlay(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, **options: object
    ) -> Tensor:
        plan = _plan(space, input.array, weight.array, **{**conv_transpose.options, **options})
        x, images = input.reshape(space.narrow(plan.maps)), space.narrow(plan.images)
        y = window_decomposition.overlay(x, weight, bias, images, plan.geometry, plan.sizes[-1])
        return y.reshape(space.own(plan.images, input.shape))

    @op(
        name=space.name,
        saves=("input", "weight"),
        decomposition=overlay,
        double_backward="decomposition",
        samples=samples_in(dims, _SAMPLES),
        wrong=wrong_in(dims, _WRONG),
        method=False,
    )
    def conv_transpose(
        input: Array,
        weight: Array,
        bias: Array | None = None,
        *,
        stride: PerDim = 1,
        padding: PerDim = 0,
        output_padding: PerDim = 0,
        groups: int = 1,
        dilation: PerDim = 1,
    ) -> Array:
        """Each number times each filter, `stride` apart and summed where they overlap, plus bias.

        `padding` elements are cut off at each end, `output_padding` added at the second.
        """
        _check(space, input, weight, bias, groups)
        options = stride, padding, output_padding, groups, dilation
        plan = _plan(space, input, weight, *options)
        y = plan.lay(input, weight, input.dtype if bias is None else input.dtype.computed)
        if bias is not None:
            y = map_binary("add", y, bias.reshape((1, bias.shape[0], 1, 1)), input.dtype)
        return y.reshape(space.own(plan.images, input.shape))

    @conv_transpose.gradient
    def gradient(
        grad: Array, *, input: Array, weight: Array, needs: tuple[bool, ...], **options: Any
    ) -> tuple[Array | None, ...]:
        """The convolution of the gradient, and that convolution's gradient of its weight."""
        plan = _plan(space, input, weight, **options)
        grad = grad.contiguous().reshape(plan.images)
        return (
            plan.slide(grad, weight).reshape(input.shape) if needs[0] else None,
            plan.weight_gradient(input, grad).reshape(weight.shape) if needs[1] else None,
            grad_bias(grad) if needs[2] else None,
        )

    return conv_transpose


conv_transpose2d = _conv_transpose(2)
conv_transpose1d = _conv_transpose(1)
