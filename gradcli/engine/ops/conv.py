"""Convolution of images."""

from __future__ import annotations

from dataclasses import dataclass

from gradcli.engine.array import Array, empty, run
from gradcli.engine.op import op
from gradcli.engine.ops.along import floats, match
from gradcli.engine.ops.window import Pair, images, pair, reach, refuse_empty
from gradcli.engine.sample import none, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.errors import OptionError, ShapeError


@dataclass(frozen=True)
class _Plan:
    """A convolution with its options spelt out."""

    x: Shape  # (N, C, H, W)
    y: Shape  # (N, filters, rows, columns)
    sizes: tuple[int, ...]  # what the kernels want


def _padding(
    padding: Pair | str, window: tuple[int, int], stride: tuple[int, int]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Padding (above, left) and (above + below, left + right)."""
    if padding == "valid":
        return (0, 0), (0, 0)
    if padding == "same":
        if stride != (1, 1):
            raise OptionError(f"conv2d: padding 'same' needs stride 1, got {stride}")
        rows, columns = window[0] - 1, window[1] - 1
        return (rows // 2, columns // 2), (rows, columns)
    if isinstance(padding, str):
        raise OptionError(
            f"conv2d: padding must be 'same', 'valid', a number or a pair, got {padding!r}"
        )
    rows, columns = pair("conv2d", "padding", padding, 0)
    return (rows, columns), (2 * rows, 2 * columns)


def _check_filters(x: Array, weight: Array, bias: Array | None, groups: int) -> None:
    floats("conv2d", x)
    match("conv2d", x, weight=weight, bias=bias)
    if not isinstance(groups, int) or isinstance(groups, bool) or groups < 1:
        raise OptionError(f"conv2d: groups must be a whole number of at least 1, got {groups!r}")
    if weight.ndim != 4 or 0 in weight.shape[2:]:
        raise ShapeError(
            f"conv2d: weight must be (filters, channels / groups, rows, columns), "
            f"got shape {weight.shape}"
        )
    if weight.shape[0] % groups:
        raise ShapeError(
            f"conv2d: {groups} groups do not divide {weight.shape[0]} filters; "
            f"input {x.shape}, weight {weight.shape}"
        )
    channels, expected = images("conv2d", x)[1], weight.shape[1] * groups
    if channels != expected:
        raise ShapeError(
            f"conv2d: input has {channels} channels, the filters expect {expected}; "
            f"input {x.shape}, weight {weight.shape}, groups {groups}"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ShapeError(
            f"conv2d: bias {bias.shape} does not fit weight {weight.shape}: "
            f"expected {weight.shape[:1]}"
        )


def _plan(
    x: Array, weight: Array, stride: Pair, padding: Pair | str, dilation: Pair, groups: int
) -> _Plan:
    step, gap = pair("conv2d", "stride", stride), pair("conv2d", "dilation", dilation)
    window = (reach(weight.shape[2], gap[0]), reach(weight.shape[3], gap[1]))
    before, total = _padding(padding, window, step)
    n, _, h, w = shape = images("conv2d", x)
    size = (
        (h + total[0] - window[0]) // step[0] + 1,
        (w + total[1] - window[1]) // step[1] + 1,
    )
    refuse_empty("conv2d", size, x, f"weight {weight.shape}, padding {padding!r}")
    return _Plan(shape, (n, weight.shape[0], *size), (*step, *before, *gap, groups))


@op(
    saves=("input", "weight"),
    samples=[
        sample((2, 3, 6, 7), (4, 3, 3, 3), (4,)),
        sample((2, 1, 5, 5), (3, 1, 2, 3), none(), stride=2, padding=1),
        sample((1, 4, 7, 5), (6, 2, 3, 1), (6,), stride=(2, 1), padding=(0, 2), groups=2),
        sample((2, 2, 8, 6), (2, 2, 3, 2), (2,), dilation=(2, 3), padding="same"),
        sample((1, 3, 4, 4), (3, 1, 3, 3), none(), padding="same", groups=3),
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
            "must be float32 or float64",
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
    _check_filters(input, weight, bias, groups)
    plan = _plan(input, weight, stride, padding, dilation, groups)
    y = empty(plan.y, input.dtype)
    start = empty((0,), input.dtype) if bias is None else bias.contiguous()
    x = input.contiguous().reshape(plan.x)
    run("conv2d_forward", x, weight.contiguous(), start, y, sizes=plan.sizes)
    return y.reshape(plan.y[input.ndim == 3 :])


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
    plan = _plan(input, weight, stride, padding, dilation, groups)
    grad = grad.contiguous().reshape(plan.y)
    grad_x = grad_weight = None
    if needs[0]:
        grad_x = empty(plan.x, grad.dtype)
        run("conv2d_grad_input", grad, weight.contiguous(), grad_x, sizes=plan.sizes)
        grad_x = grad_x.reshape(input.shape)
    if needs[1]:
        grad_weight = empty(weight.shape, grad.dtype)
        x = input.contiguous().reshape(plan.x)
        run("conv2d_grad_weight", grad, x, grad_weight, sizes=plan.sizes)
    return grad_x, grad_weight, _grad_bias(grad) if needs[2] else None


def _grad_bias(grad: Array) -> Array:
    bias = empty(grad.shape[1:2], grad.dtype)
    run("conv2d_grad_bias", grad, bias)
    return bias
