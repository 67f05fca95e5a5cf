"""Convolution of images and of lines."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradcli.engine.array import Array, empty, nothing, run
from gradcli.engine.dtype import DType
from gradcli.engine.op import Op, op
from gradcli.engine.ops.along import floats, match
from gradcli.engine.ops.conv import window_decomposition
from gradcli.engine.ops.conv.cases import samples_in, wrong_in
from gradcli.engine.ops.conv.geometry import Geometry, PerDim, Space, flat, image
from gradcli.engine.precision import product_options
from gradcli.engine.sample import none, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError
from gradcli.wording import quantity, verb


class ConvShapes(NamedTuple):
    """A convolution with its options spelt out: filters slide over images, which gives maps."""

    images: Shape  # (N, C, H, W)
    maps: Shape  # (N, filters, rows, columns)
    weight: Shape  # (filters, C / groups, rows, columns)
    sizes: tuple[int, ...]  # what the kernels want
    geometry: Geometry

    def slide(self, images: Array, weight: Array, bias: Array | None = None) -> Array:
        """The maps."""
        maps = empty(self.maps, images.dtype)
        start = nothing(images.dtype) if bias is None else bias.contiguous()
        x = images.contiguous().reshape(self.images)
        filters = weight.contiguous().reshape(self.weight)
        options = product_options(images.dtype)
        run("conv2d_forward", x, filters, start, maps, sizes=self.sizes, options=options)
        return maps

    def lay(self, maps: Array, weight: Array, dtype: DType) -> Array:
        """Images: filters laid over each other, each times the number of a map there."""
        images = empty(self.images, dtype)
        y = maps.contiguous().reshape(self.maps)
        filters = weight.contiguous().reshape(self.weight)
        options = product_options(maps.dtype)
        run("conv2d_grad_input", y, filters, images, sizes=self.sizes, options=options)
        return images

    def weight_gradient(self, maps: Array, images: Array, *, depthwise: bool = False) -> Array:
        """The sum over all positions of what is in a map times what its filter sees there."""
        filters = empty(self.weight, maps.dtype)
        y, x = maps.contiguous().reshape(self.maps), images.contiguous().reshape(self.images)
        kernel = "depthwise_grad_weight" if depthwise else "conv2d_grad_weight"
        options = () if depthwise else product_options(maps.dtype)
        run(kernel, y, x, filters, sizes=self.sizes, options=options)
        return filters


def check_filters(space: Space, weight: Array, names: str) -> None:
    """A filter bank has two dimensions and those of a window, which is not empty."""
    if weight.ndim != space.dims + 2 or 0 in weight.shape[2:]:
        expected = f"({names}, {space.words.window})"
        raise ShapeError(f"{space.name}: weight must be {expected}, got shape {weight.shape}")


def check_groups(space: Space, groups: int) -> None:
    """A whole number of at least 1."""
    if groups < 1:
        raise OptionError(
            f"{space.name}: groups must be a whole number of at least 1, got {groups!r}"
        )


def check_bias(space: Space, bias: Array | None, count: int, weight: Array) -> None:
    """One number a filter."""
    if bias is not None and bias.shape != (count,):
        fits = f"does not fit weight {weight.shape}: expected {(count,)}"
        raise ShapeError(f"{space.name}: bias {bias.shape} {fits}")


def grad_bias(grad: Array) -> Array:
    """The sum of a gradient (N, C, H, W) over all but its channels."""
    bias = empty(grad.shape[1:2], grad.dtype)
    run("conv2d_grad_bias", grad, bias)
    return bias


def _check(space: Space, x: Array, weight: Array, bias: Array | None, groups: int) -> None:
    floats(space.name, x)
    match(space.name, x, weight=weight, bias=bias)
    check_groups(space, groups)
    check_filters(space, weight, "filters, channels / groups")
    if weight.shape[0] % groups:
        raise ShapeError(
            f"{space.name}: {quantity(groups, 'group')} {verb(groups, 'does', 'do')} not divide "
            f"{quantity(weight.shape[0], 'filter')}; input {x.shape}, weight {weight.shape}"
        )
    channels, expected = space.batched(x.shape)[1], weight.shape[1] * groups
    if channels != expected:
        raise ShapeError(
            f"{space.name}: input has {quantity(channels, 'channel')}, the filters expect "
            f"{expected}; input {x.shape}, weight {weight.shape}, groups {groups}"
        )
    check_bias(space, bias, weight.shape[0], weight)


def _plan(
    space: Space,
    x: Array,
    weight: Array,
    stride: PerDim,
    padding: PerDim | str,
    dilation: PerDim,
    groups: int,
) -> ConvShapes:
    geometry = space.geometry(weight.shape[2:], stride, padding, dilation)
    images = space.batched(x.shape)
    counts = geometry.counts(images[2:])
    space.refuse_empty(counts, x.shape, f"weight {weight.shape}, padding {padding!r}")
    maps = (images[0], weight.shape[0], *flat(counts))
    sizes = (*geometry.sizes(), groups)
    return ConvShapes(image(images), maps, image(weight.shape), sizes, geometry)


_SAMPLES = [
    sample((2, 3, 6, 7), (4, 3, 3, 3), (4,)),
    sample((2, 1, 5, 5), (3, 1, 2, 3), none(), stride=2, padding=1),
    sample((1, 4, 7, 5), (6, 2, 3, 1), (6,), stride=(2, 1), padding=(0, 2), groups=2),
    sample((2, 2, 8, 6), (2, 2, 3, 2), (2,), dilation=(2, 3), padding="same"),
    sample((1, 3, 4, 4), (3, 1, 3, 3), none(), padding="same", groups=3),
    sample((2, 2, 7, 5), (4, 1, 3, 2), (4,), stride=(2, 1), padding=(2, 1), groups=2),
    sample((1, 2, 6, 7), (2, 1, 2, 3), (2,), stride=(1, 3), dilation=(3, 2), groups=2),
    sample((2, 5, 5), (3, 2, 2, 2), (3,), padding="valid"),
    sample((1, 1, 1, 1), (1, 1, 1, 1), (1,)),
    sample((0, 2, 5, 5), (3, 2, 3, 3), (3,)),
    sample((1, 2, 3, 4), (0, 2, 2, 2), (0,)),
    sample((19, 1, 4, 3), (2, 1, 2, 2), (2,)),
]
_WRONG = [
    wrong(
        sample((2, 3, 5, 5), (4, 1, 3, 3), none()),
        "conv2d: input has 3 channels, the filters expect 1",
    ),
    wrong(sample((2, 3, 5, 5), (4, 3, 3, 3), (3,)), "conv2d: bias (3,) does not fit weight"),
    wrong(sample((1, 1, 5, 2), (1, 1, 3, 4), none()), "conv2d: the output would be 3 x -1"),
    wrong(sample((5, 5), (1, 1, 3, 3), none()), "input must be (N, C, H, W) or (C, H, W)"),
    wrong(sample((1, 1, 5, 5), (1, 3, 3), none()), "weight must be (filters, channels"),
    wrong(sample((1, 2, 5, 5), (3, 1, 3, 3), none(), groups=2), "2 groups do not divide 3"),
    wrong(sample((1, 2, 5, 5), (3, 2, 3, 3), none(), groups=0), "groups must be"),
    wrong(sample((1, 1, 5, 5), (1, 1, 3, 3), none(), stride=0), "stride must be a whole"),
    wrong(sample((1, 1, 5, 5), (1, 1, 3, 3), none(), stride=(1, 1, 1)), "stride must be a whole"),
    wrong(sample((1, 1, 5, 5), (1, 1, 3, 3), none(), padding=-1), "padding must be"),
    wrong(sample((1, 1, 5, 5), (1, 1, 3, 3), none(), padding="full"), "padding must be 'same'"),
    wrong(
        sample((1, 1, 5, 5), (1, 1, 3, 3), none(), padding="same", stride=2),
        "padding 'same' needs stride 1",
    ),
]


def _conv(dims: int) -> Op[Tensor]:
    space = Space(f"conv{dims}d", dims)

    def convolution(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, **options: object
    ) -> Tensor:
        plan = _plan(space, input.array, weight.array, **{**conv.options, **options})
        x, maps = input.reshape(space.narrow(plan.images)), space.narrow(plan.maps)
        y = window_decomposition.convolution(x, weight, bias, maps, plan.geometry, plan.sizes[-1])
        return y.reshape(space.own(plan.maps, input.shape))

    @op(
        name=space.name,
        saves=("input", "weight"),
        decomposition=convolution,
        double_backward="decomposition",
        samples=samples_in(dims, _SAMPLES),
        wrong=wrong_in(dims, _WRONG),
        method=False,
    )
    def conv(
        input: Array,
        weight: Array,
        bias: Array | None = None,
        *,
        stride: PerDim = 1,
        padding: PerDim | str = 0,
        dilation: PerDim = 1,
        groups: int = 1,
    ) -> Array:
        """The product of each filter with each window, summed, plus the filter's bias."""
        _check(space, input, weight, bias, groups)
        plan = _plan(space, input, weight, stride, padding, dilation, groups)
        return plan.slide(input, weight, bias).reshape(space.own(plan.maps, input.shape))

    @conv.gradient
    def gradient(
        grad: Array, *, input: Array, weight: Array, needs: tuple[bool, ...], **options: Any
    ) -> tuple[Array | None, ...]:
        """What each pixel, each weight and each bias added to the output."""
        plan = _plan(space, input, weight, **options)
        grad = grad.contiguous().reshape(plan.maps)
        grad_x = grad_weight = None
        if needs[0]:
            grad_x = plan.lay(grad, weight, grad.dtype).reshape(input.shape)
        if needs[1]:
            # Where each channel has filters of its own there are no matrices to multiply.
            depthwise = options["groups"] > 1 and weight.shape[1] == 1
            grad_weight = plan.weight_gradient(grad, input, depthwise=depthwise)
            grad_weight = grad_weight.reshape(weight.shape)
        return grad_x, grad_weight, grad_bias(grad) if needs[2] else None

    return conv


conv2d = _conv(2)
conv1d = _conv(1)
