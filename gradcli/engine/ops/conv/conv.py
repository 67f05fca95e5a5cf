"""Convolution of images and of lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradcli.engine.array import Array, empty, nothing, run
from gradcli.engine.op import op
from gradcli.engine.ops.along import floats, match
from gradcli.engine.ops.conv.window import Pair, Window, reach
from gradcli.engine.ops.conv.window_composed import convolved
from gradcli.engine.precision import product_options
from gradcli.engine.sample import none, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError

LINES, IMAGES = Window("conv1d", 1), Window("conv2d", 2)


@dataclass(frozen=True)
class _Plan:
    """A convolution with its options spelt out."""

    x: Shape  # (N, C, H, W)
    y: Shape  # (N, filters, rows, columns)
    weight: Shape  # (filters, C / groups, rows, columns)
    sizes: tuple[int, ...]  # what the kernels want


def _padding(
    kind: Window, padding: Pair | str, window: tuple[int, int], stride: tuple[int, int]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Padding (above, left) and (above + below, left + right)."""
    if padding == "valid":
        return (0, 0), (0, 0)
    if padding == "same":
        if stride != (1, 1):
            shown = stride if kind.dims == 2 else stride[1]
            raise OptionError(f"{kind.op}: padding 'same' needs stride 1, got {shown}")
        rows, columns = window[0] - 1, window[1] - 1
        return (rows // 2, columns // 2), (rows, columns)
    if isinstance(padding, str):
        numbers = "a number or a pair" if kind.dims == 2 else "or a number"
        raise OptionError(
            f"{kind.op}: padding must be 'same', 'valid', {numbers}, got {padding!r:.60}"
        )
    rows, columns = kind.pair("padding", padding, 0)
    return (rows, columns), (2 * rows, 2 * columns)


def check_filters(kind: Window, weight: Array, names: str) -> None:
    """A filter bank has two dimensions and those of a window, which is not empty."""
    if weight.ndim != kind.dims + 2 or 0 in weight.shape[2:]:
        window = "rows, columns" if kind.dims == 2 else "length"
        raise ShapeError(f"{kind.op}: weight must be ({names}, {window}), got shape {weight.shape}")


def check_groups(kind: Window, groups: object) -> None:
    """A whole number of at least 1."""
    if not isinstance(groups, int) or isinstance(groups, bool) or groups < 1:
        raise OptionError(f"{kind.op}: groups must be a whole number of at least 1, got {groups!r}")


def check_bias(kind: Window, bias: Array | None, count: int, weight: Array) -> None:
    """One number a filter."""
    if bias is not None and bias.shape != (count,):
        raise ShapeError(
            f"{kind.op}: bias {bias.shape} does not fit weight {weight.shape}: expected {(count,)}"
        )


def _check(kind: Window, x: Array, weight: Array, bias: Array | None, groups: int) -> None:
    floats(kind.op, x)
    match(kind.op, x, weight=weight, bias=bias)
    check_groups(kind, groups)
    check_filters(kind, weight, "filters, channels / groups")
    if weight.shape[0] % groups:
        raise ShapeError(
            f"{kind.op}: {groups} groups do not divide {weight.shape[0]} filters; "
            f"input {x.shape}, weight {weight.shape}"
        )
    channels, expected = kind.images(x)[1], weight.shape[1] * groups
    if channels != expected:
        raise ShapeError(
            f"{kind.op}: input has {channels} channels, the filters expect {expected}; "
            f"input {x.shape}, weight {weight.shape}, groups {groups}"
        )
    check_bias(kind, bias, weight.shape[0], weight)


def _plan(
    kind: Window,
    x: Array,
    weight: Array,
    stride: Pair,
    padding: Pair | str,
    dilation: Pair,
    groups: int,
) -> _Plan:
    step, gap = kind.pair("stride", stride), kind.pair("dilation", dilation)
    filters = kind.image(weight.shape)
    window = (reach(filters[2], gap[0]), reach(filters[3], gap[1]))
    before, total = _padding(kind, padding, window, step)
    n, _, h, w = shape = kind.images(x)
    size = (
        (h + total[0] - window[0]) // step[0] + 1,
        (w + total[1] - window[1]) // step[1] + 1,
    )
    kind.refuse_empty(size, x, f"weight {weight.shape}, padding {padding!r}")
    sizes = (*step, *before, *gap, groups)
    return _Plan(shape, (n, filters[0], *size), filters, sizes)


def _forward(kind: Window, input: Array, weight: Array, bias: Array | None, plan: _Plan) -> Array:
    y = empty(plan.y, input.dtype)
    start = nothing(input.dtype) if bias is None else bias.contiguous()
    x, filters = input.contiguous().reshape(plan.x), weight.contiguous().reshape(plan.weight)
    options = product_options(input.dtype)
    run("conv2d_forward", x, filters, start, y, sizes=plan.sizes, options=options)
    return y.reshape(kind.own(plan.y, input))


def _gradient(
    grad: Array, input: Array, weight: Array, plan: _Plan, needs: tuple[bool, ...]
) -> tuple[Array | None, ...]:
    grad = grad.contiguous().reshape(plan.y)
    grad_x = grad_weight = None
    options = product_options(grad.dtype)
    if needs[0]:
        grad_x = empty(plan.x, grad.dtype)
        filters = weight.contiguous().reshape(plan.weight)
        run("conv2d_grad_input", grad, filters, grad_x, sizes=plan.sizes, options=options)
        grad_x = grad_x.reshape(input.shape)
    if needs[1]:
        grad_weight = empty(plan.weight, grad.dtype)
        x = input.contiguous().reshape(plan.x)
        # Where each channel has filters of its own there are no matrices to multiply.
        alone = plan.weight[1] == 1 and plan.sizes[-1] > 1
        kernel = "depthwise_grad_weight" if alone else "conv2d_grad_weight"
        run(kernel, grad, x, grad_weight, sizes=plan.sizes, options=() if alone else options)
        grad_weight = grad_weight.reshape(weight.shape)
    return grad_x, grad_weight, grad_bias(grad) if needs[2] else None


def grad_bias(grad: Array) -> Array:
    """The sum of a gradient (N, C, H, W) over all but its channels."""
    bias = empty(grad.shape[1:2], grad.dtype)
    run("conv2d_grad_bias", grad, bias)
    return bias


def _composed(kind: Window) -> Callable[..., Tensor]:
    def composed(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        *,
        stride: Pair = 1,
        padding: Pair | str = 0,
        dilation: Pair = 1,
        groups: int = 1,
    ) -> Tensor:
        plan = _plan(kind, input.array, weight.array, stride, padding, dilation, groups)
        x, filters = input.reshape(plan.x), weight.reshape(plan.weight)
        made = convolved(x, filters, bias, plan.y, plan.sizes)
        return made.reshape(kind.own(plan.y, input.array))

    composed.__name__ = "convolved"
    return composed


@op(
    saves=("input", "weight"),
    composed=_composed(IMAGES),
    twice="composed",
    samples=[
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
    ],
    wrong=[
        wrong(
            sample((2, 3, 5, 5), (4, 1, 3, 3), none()),
            "conv2d: input has 3 channels, the filters expect 1",
        ),
        wrong(sample((2, 3, 5, 5), (4, 3, 3, 3), (3,)), "conv2d: bias (3,) does not fit weight"),
        wrong(sample((1, 1, 2, 5), (1, 1, 4, 3), none()), "conv2d: the output would be -1 x 3"),
        wrong(sample((5, 5), (1, 1, 3, 3), none()), "conv2d: input must be (N, C, H, W)"),
        wrong(sample((1, 1, 5, 5), (1, 3, 3), none()), "conv2d: weight must be"),
        wrong(sample((1, 2, 5, 5), (3, 1, 3, 3), none(), groups=2), "2 groups do not divide 3"),
        wrong(sample((1, 2, 5, 5), (3, 2, 3, 3), none(), groups=0), "groups must be"),
        wrong(sample((1, 1, 5, 5), (1, 1, 3, 3), none(), stride=0), "stride must be"),
        wrong(sample((1, 1, 5, 5), (1, 1, 3, 3), none(), padding=-1), "padding must be"),
        wrong(sample((1, 1, 5, 5), (1, 1, 3, 3), none(), padding="full"), "padding must be"),
        wrong(
            sample((1, 1, 5, 5), (1, 1, 3, 3), none(), padding="same", stride=2),
            "padding 'same' needs stride 1",
        ),
        wrong(
            sample((1, 1, 5, 5), (1, 1, 3, 3), none()),
            "must be float32, float64 or bfloat16",
            dtype="int64",
        ),
    ],
    method=False,
)
def conv2d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Pair = 1,
    padding: Pair | str = 0,
    dilation: Pair = 1,
    groups: int = 1,
) -> Array:
    """The product of each filter with each window of the image, summed, plus the filter's bias."""
    _check(IMAGES, input, weight, bias, groups)
    plan = _plan(IMAGES, input, weight, stride, padding, dilation, groups)
    return _forward(IMAGES, input, weight, bias, plan)


@conv2d.gradient
def conv2d_gradient(
    grad: Array,
    *,
    input: Array,
    weight: Array,
    stride: Pair,
    padding: Pair | str,
    dilation: Pair,
    groups: int,
    needs: tuple[bool, ...],
) -> tuple[Array | None, ...]:
    """What each pixel, each weight and each bias added to the output."""
    plan = _plan(IMAGES, input, weight, stride, padding, dilation, groups)
    return _gradient(grad, input, weight, plan, needs)


@op(
    saves=("input", "weight"),
    composed=_composed(LINES),
    twice="composed",
    samples=[
        sample((2, 3, 7), (4, 3, 3), (4,)),
        sample((2, 1, 9), (3, 1, 4), none(), stride=2, padding=1),
        sample((1, 4, 7), (6, 2, 3), (6,), stride=(3,), padding=(2,), groups=2),
        sample((2, 2, 8), (2, 2, 2), (2,), dilation=3, padding="same"),
        sample((3, 11), (3, 1, 3), none(), padding="same", groups=3),
        sample((2, 5), (3, 2, 2), (3,), padding="valid"),
        sample((1, 1, 1), (1, 1, 1), (1,)),
        sample((0, 2, 5), (3, 2, 3), (3,)),
        sample((1, 2, 4), (0, 2, 2), (0,)),
    ],
    wrong=[
        wrong(sample((2, 3, 5), (4, 1, 3), none()), "conv1d: input has 3 channels"),
        wrong(sample((2, 3, 5), (4, 3, 3), (3,)), "conv1d: bias (3,) does not fit weight"),
        wrong(sample((1, 1, 2), (1, 1, 4), none()), "conv1d: the output would be -1; input"),
        wrong(sample((5,), (1, 1, 3), none()), "conv1d: input must be (N, C, L) or (C, L)"),
        wrong(sample((1, 1, 5), (1, 1, 3, 3), none()), "conv1d: weight must be (filters, channels"),
        wrong(sample((1, 2, 5), (3, 1, 3), none(), groups=2), "2 groups do not divide 3"),
        wrong(
            sample((1, 1, 5), (1, 1, 3), none(), stride=(1, 1)), "conv1d: stride must be a whole"
        ),
        wrong(sample((1, 1, 5), (1, 1, 3), none(), padding="full"), "conv1d: padding must be"),
        wrong(sample((1, 1, 5), (1, 1, 3), none(), padding="same", stride=2), "stride 1, got 2"),
        wrong(
            sample((1, 1, 5), (1, 1, 3), none()),
            "must be float32, float64 or bfloat16",
            dtype="int64",
        ),
    ],
    method=False,
)
def conv1d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Pair = 1,
    padding: Pair | str = 0,
    dilation: Pair = 1,
    groups: int = 1,
) -> Array:
    """The product of each filter with each window of the line, summed, plus the filter's bias."""
    _check(LINES, input, weight, bias, groups)
    plan = _plan(LINES, input, weight, stride, padding, dilation, groups)
    return _forward(LINES, input, weight, bias, plan)


@conv1d.gradient
def conv1d_gradient(
    grad: Array,
    *,
    input: Array,
    weight: Array,
    stride: Pair,
    padding: Pair | str,
    dilation: Pair,
    groups: int,
    needs: tuple[bool, ...],
) -> tuple[Array | None, ...]:
    """What each place, each weight and each bias added to the output."""
    plan = _plan(LINES, input, weight, stride, padding, dilation, groups)
    return _gradient(grad, input, weight, plan, needs)
