"""Transposed convolution: the gradient of a convolution's image, used as a layer of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradcli.engine.array import Array, empty, nothing, run
from gradcli.engine.op import op
from gradcli.engine.ops.along import floats, match
from gradcli.engine.ops.conv.conv import check_bias, check_filters, check_groups, grad_bias
from gradcli.engine.ops.conv.window import Pair, Window, reach
from gradcli.engine.ops.conv.window_composed import spread
from gradcli.engine.ops.family import map_binary
from gradcli.engine.precision import product_options
from gradcli.engine.sample import none, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError

LINES, IMAGES = Window("conv_transpose1d", 1), Window("conv_transpose2d", 2)


@dataclass(frozen=True)
class _Plan:
    """A transposed convolution with its options spelt out."""

    x: Shape  # (N, channels in, H, W)
    y: Shape  # (N, channels out, rows, columns)
    weight: Shape  # (channels in, channels out / groups, rows, columns)
    sizes: tuple[int, ...]  # those of the convolution from y to x


def _check(kind: Window, x: Array, weight: Array, bias: Array | None, groups: int) -> None:
    floats(kind.op, x)
    match(kind.op, x, weight=weight, bias=bias)
    check_groups(kind, groups)
    check_filters(kind, weight, "channels, filters / groups")
    channels = kind.images(x)[1]
    if channels != weight.shape[0] or channels % groups:
        raise ShapeError(
            f"{kind.op}: input has {channels} channels, which must be those of the weight and "
            f"divide into {groups} groups; input {x.shape}, weight {weight.shape}"
        )
    check_bias(kind, bias, weight.shape[1] * groups, weight)


def _plan(
    kind: Window,
    x: Array,
    weight: Array,
    stride: Pair,
    padding: Pair,
    output_padding: Pair,
    groups: int,
    dilation: Pair,
) -> _Plan:
    step, gap = kind.pair("stride", stride), kind.pair("dilation", dilation)
    pad, more = kind.pair("padding", padding, 0), kind.pair("output_padding", output_padding, 0)
    if any(m and m >= max(s, d) for m, s, d in zip(more, step, gap, strict=True)):
        raise OptionError(
            f"{kind.op}: output_padding {output_padding} must be smaller than stride {stride} or "
            f"dilation {dilation}"
        )
    filters, shape = kind.image(weight.shape), kind.images(x)
    rows, columns = (
        (shape[2 + i] - 1) * step[i] - 2 * pad[i] + reach(filters[2 + i], gap[i]) + more[i]
        for i in (0, 1)
    )
    kind.refuse_empty((rows, columns), x, f"weight {weight.shape}, padding {padding!r}")
    y = (shape[0], filters[1] * groups, rows, columns)
    return _Plan(shape, y, filters, (*step, *pad, *gap, groups))


def _forward(kind: Window, input: Array, weight: Array, bias: Array | None, plan: _Plan) -> Array:
    y = empty(plan.y, input.dtype if bias is None else input.dtype.computed)
    x, filters = input.contiguous().reshape(plan.x), weight.contiguous().reshape(plan.weight)
    options = product_options(input.dtype)
    run("conv2d_grad_input", x, filters, y, sizes=plan.sizes, options=options)
    if bias is not None:
        y = map_binary("add", y, bias.reshape((1, bias.shape[0], 1, 1)), input.dtype)
    return y.reshape(kind.own(plan.y, input))


def _gradient(
    grad: Array, input: Array, weight: Array, plan: _Plan, needs: tuple[bool, ...]
) -> tuple[Array | None, ...]:
    grad = grad.contiguous().reshape(plan.y)
    grad_x = grad_weight = None
    options = product_options(grad.dtype)
    if needs[0]:
        grad_x, start = empty(plan.x, grad.dtype), nothing(grad.dtype)
        filters = weight.contiguous().reshape(plan.weight)
        run("conv2d_forward", grad, filters, start, grad_x, sizes=plan.sizes, options=options)
        grad_x = grad_x.reshape(input.shape)
    if needs[1]:
        grad_weight = empty(plan.weight, grad.dtype)
        x = input.contiguous().reshape(plan.x)
        run("conv2d_grad_weight", x, grad, grad_weight, sizes=plan.sizes, options=options)
        grad_weight = grad_weight.reshape(weight.shape)
    return grad_x, grad_weight, grad_bias(grad) if needs[2] else None


def _composed(kind: Window) -> Callable[..., Tensor]:
    def composed(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        *,
        stride: Pair = 1,
        padding: Pair = 0,
        output_padding: Pair = 0,
        groups: int = 1,
        dilation: Pair = 1,
    ) -> Tensor:
        how = stride, padding, output_padding, groups, dilation
        plan = _plan(kind, input.array, weight.array, *how)
        x, filters = input.reshape(plan.x), weight.reshape(plan.weight)
        made = spread(x, filters, bias, plan.y, plan.sizes)
        return made.reshape(kind.own(plan.y, input.array))

    composed.__name__ = "spread"
    return composed


@op(
    saves=("input", "weight"),
    composed=_composed(IMAGES),
    twice="composed",
    samples=[
        sample((2, 3, 4, 5), (3, 4, 3, 3), (4,)),
        sample((2, 1, 3, 4), (1, 3, 2, 3), none(), stride=2, padding=1),
        sample((1, 4, 3, 2), (4, 3, 3, 1), (6,), stride=(2, 3), padding=(0, 1), groups=2,
               output_padding=(1, 2)),
        sample((2, 2, 3, 4), (2, 2, 3, 2), (2,), dilation=(2, 3), output_padding=(1, 2)),
        sample((3, 4, 4), (3, 1, 3, 3), none(), padding=1, groups=3),
        sample((1, 1, 1, 1), (1, 1, 1, 1), (1,)),
        sample((0, 2, 5, 5), (2, 3, 3, 3), (3,)),
        sample((1, 2, 3, 4), (2, 0, 2, 2), (0,)),
    ],
    wrong=[
        wrong(sample((2, 3, 5, 5), (4, 3, 3, 3), none()), "input has 3 channels, which must be"),
        wrong(sample((2, 3, 5, 5), (3, 3, 3, 3), none(), groups=2), "divide into 2 groups"),
        wrong(sample((2, 3, 5, 5), (3, 4, 3, 3), (3,)), "conv_transpose2d: bias (3,) does not fit"),
        wrong(sample((1, 1, 2, 5), (1, 1, 2, 2), none(), padding=2), "the output would be -1 x 2"),
        wrong(sample((5, 5), (1, 1, 3, 3), none()), "input must be (N, C, H, W)"),
        wrong(sample((1, 3, 5, 5), (3, 3, 3), none()), "weight must be (channels, filters"),
        wrong(sample((1, 2, 5, 5), (2, 1, 3, 3), none(), groups=0), "groups must be"),
        wrong(sample((1, 1, 5, 5), (1, 1, 3, 3), none(), stride=0), "stride must be"),
        wrong(sample((1, 1, 5, 5), (1, 1, 3, 3), none(), output_padding=1), "must be smaller than"),
        wrong(sample((1, 1, 5, 5), (1, 1, 3, 3), none()), "must be float32", dtype="int64"),
    ],
    method=False,
)  # fmt: skip
def conv_transpose2d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Pair = 1,
    padding: Pair = 0,
    output_padding: Pair = 0,
    groups: int = 1,
    dilation: Pair = 1,
) -> Array:
    """Each pixel times each filter, laid `stride` apart and summed where they overlap, plus bias.

    `padding` pixels are cut off at each side, `output_padding` ones added below and to the right.
    """
    _check(IMAGES, input, weight, bias, groups)
    plan = _plan(IMAGES, input, weight, stride, padding, output_padding, groups, dilation)
    return _forward(IMAGES, input, weight, bias, plan)


@conv_transpose2d.gradient
def conv_transpose2d_gradient(
    grad: Array,
    *,
    input: Array,
    weight: Array,
    stride: Pair,
    padding: Pair,
    output_padding: Pair,
    groups: int,
    dilation: Pair,
    needs: tuple[bool, ...],
) -> tuple[Array | None, ...]:
    """The convolution of the gradient, and that convolution's gradient of its weight."""
    plan = _plan(IMAGES, input, weight, stride, padding, output_padding, groups, dilation)
    return _gradient(grad, input, weight, plan, needs)


@op(
    saves=("input", "weight"),
    composed=_composed(LINES),
    twice="composed",
    samples=[
        sample((2, 3, 5), (3, 4, 3), (4,)),
        sample((2, 1, 4), (1, 3, 4), none(), stride=2, padding=1),
        sample((1, 4, 3), (4, 3, 3), (6,), stride=(3,), padding=(2,), groups=2, output_padding=2),
        sample((2, 2, 4), (2, 2, 2), (2,), dilation=3, output_padding=2),
        sample((3, 4), (3, 1, 3), none(), padding=1, groups=3),
        sample((1, 1, 1), (1, 1, 1), (1,)),
        sample((0, 2, 5), (2, 3, 3), (3,)),
    ],
    wrong=[
        wrong(sample((2, 3, 5), (4, 3, 3), none()), "input has 3 channels, which must be"),
        wrong(sample((2, 3, 5), (3, 4, 3), (3,)), "conv_transpose1d: bias (3,) does not fit"),
        wrong(sample((1, 1, 2), (1, 1, 2), none(), padding=2), "the output would be -1; input"),
        wrong(sample((5,), (1, 1, 3), none()), "input must be (N, C, L)"),
        wrong(sample((1, 1, 5), (1, 1, 3), none(), output_padding=1), "must be smaller than"),
        wrong(sample((1, 1, 5), (1, 1, 3), none()), "must be float32", dtype="int64"),
    ],
    method=False,
)
def conv_transpose1d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Pair = 1,
    padding: Pair = 0,
    output_padding: Pair = 0,
    groups: int = 1,
    dilation: Pair = 1,
) -> Array:
    """Each number times each filter, laid `stride` apart and summed where they overlap, plus bias.

    `padding` places are cut off at both ends, `output_padding` ones added at the second.
    """
    _check(LINES, input, weight, bias, groups)
    plan = _plan(LINES, input, weight, stride, padding, output_padding, groups, dilation)
    return _forward(LINES, input, weight, bias, plan)


@conv_transpose1d.gradient
def conv_transpose1d_gradient(
    grad: Array,
    *,
    input: Array,
    weight: Array,
    stride: Pair,
    padding: Pair,
    output_padding: Pair,
    groups: int,
    dilation: Pair,
    needs: tuple[bool, ...],
) -> tuple[Array | None, ...]:
    """The convolution of the gradient, and that convolution's gradient of its weight."""
    plan = _plan(LINES, input, weight, stride, padding, output_padding, groups, dilation)
    return _gradient(grad, input, weight, plan, needs)
