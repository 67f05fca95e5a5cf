"""Pooling: one number for each window of an image or a line."""

from __future__ import annotations

from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine.array import Array, empty, run
from gradcli.engine.op import function, op
from gradcli.engine.ops.along import floats
from gradcli.engine.ops.window import Pair, Window, reach
from gradcli.engine.sample import distinct, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError

Sizes = tuple[int, ...]


def _output(length: int, window: int, stride: int, padding: int, ceil_mode: bool) -> int:
    """How many windows fit; with ceil_mode also one that begins inside and hangs over."""
    room = length + 2 * padding - window
    if not ceil_mode:
        return room // stride + 1
    size = -(-room // stride) + 1
    return size - 1 if (size - 1) * stride >= length + padding else size


def _sizes(
    kind: Window, kernel_size: Pair, stride: Pair | None, padding: Pair, dilation: Pair
) -> Sizes:
    """Window, stride, padding, dilation: two numbers each, as the kernels want them."""
    window = kind.pair("kernel_size", kernel_size)
    # An empty stride is torch's way of saying that windows follow each other.
    step = kind.pair("stride", kernel_size if stride in (None, (), []) else stride)
    pad, gap = kind.pair("padding", padding, 0), kind.pair("dilation", dilation)
    for p, k, d in zip(pad, window, gap, strict=True):
        if 2 * p > reach(k, d):
            raise OptionError(
                f"{kind.op}: padding {padding} is more than half of kernel_size {kernel_size}"
            )
    return (*window, *step, *pad, *gap)


def _planes(kind: Window, x: Array, sizes: Sizes, ceil_mode: bool) -> tuple[Shape, Shape]:
    """Shapes (planes, rows, columns) of the input and of the output."""
    floats(kind.op, x)
    n, c, h, w = kind.images(x)
    rows, columns = (
        _output(length, reach(sizes[i], sizes[6 + i]), sizes[2 + i], sizes[4 + i], ceil_mode)
        for i, length in enumerate((h, w))
    )
    first = 2 - kind.dims
    what = f"kernel_size {sizes[first:2]}, padding {sizes[4 + first : 6]}"
    kind.refuse_empty((rows, columns), x, what)
    return (n * c, h, w), (n * c, rows, columns)


def _own(kind: Window, x: Array, planes: Shape) -> Shape:
    """(planes, rows, columns) in the dimensions of the input."""
    return (*x.shape[: -kind.dims], *planes[3 - kind.dims :])


def _max(kind: Window, x: Array, sizes: Sizes, ceil_mode: bool) -> tuple[Array, Array]:
    before, after = _planes(kind, x, sizes, ceil_mode)
    y, indices = empty(after, x.dtype), empty(after, dtypes.int64)
    run("max_pool2d_forward", x.contiguous().reshape(before), y, indices, sizes=sizes)
    shape = _own(kind, x, after)
    return y.reshape(shape), indices.reshape(shape)


def _gradient(
    kernel: str, kind: Window, grad: Array, shape: Shape, sizes: Sizes, *indices: Array
) -> Array:
    """What a backward kernel makes of the gradient, in the shape of the input."""
    *front, h, w = kind.image(shape)
    planes = (_count(front), *kind.image(grad.shape)[-2:])
    out = empty((_count(front), h, w), grad.dtype)
    places = [i.reshape(planes) for i in indices]
    run(kernel, grad.contiguous().reshape(planes), *places, out, sizes=sizes)
    return out.reshape(shape)


def _count(front: list[int]) -> int:
    return shapes.numel(tuple(front))


@op(
    outputs=("y", "indices"),
    visible=2,
    saves="indices",
    samples=[
        sample(distinct((2, 3, 6, 4)), kernel_size=2),
        sample(distinct((1, 2, 7, 5)), kernel_size=(3, 2), stride=(2, 1), padding=1),
        sample(distinct((2, 5, 6)), kernel_size=2, stride=2, ceil_mode=True),
        sample(distinct((1, 1, 7, 8)), kernel_size=3, stride=1, dilation=2, padding=(2, 0)),
        sample(distinct((1, 1, 1, 1)), kernel_size=1),
        sample(distinct((0, 2, 4, 4)), kernel_size=2),
    ],
    wrong=[
        wrong(sample((1, 1, 2, 5), kernel_size=3), "the output would be 0 x 1"),
        wrong(sample((1, 1, 5, 5), kernel_size=2, padding=2), "more than half of kernel_size 2"),
        wrong(sample((1, 1, 5, 5), kernel_size=0), "kernel_size must be"),
        wrong(sample((5, 5), kernel_size=2), "input must be (N, C, H, W)"),
        wrong(sample((1, 1, 4, 4), kernel_size=2), "must be float32 or float64", dtype="int64"),
    ],
    method=False,
)
def max_pool2d_with_indices(
    input: Array,
    *,
    kernel_size: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    dilation: Pair = 1,
    ceil_mode: bool = False,
) -> tuple[Array, Array]:
    """The largest pixel of each window, and its index within the plane; the first of equals."""
    kind = Window("max_pool2d_with_indices", 2)
    return _max(kind, input, _sizes(kind, kernel_size, stride, padding, dilation), ceil_mode)


@max_pool2d_with_indices.gradient
def max_pool2d_gradient(
    grads: tuple[Array, ...],
    *,
    indices: Array,
    kernel_size: Pair,
    stride: Pair | None,
    padding: Pair,
    dilation: Pair,
    shapes: tuple[Shape, ...],
) -> Array:
    """The gradient of each window goes to its largest pixel."""
    kind = Window("max_pool2d", 2)
    sizes = _sizes(kind, kernel_size, stride, padding, dilation)
    return _gradient("max_pool2d_backward", kind, grads[0], shapes[0], sizes, indices)


@function(method=False)
def max_pool2d(
    input: Tensor,
    kernel_size: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    dilation: Pair = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest pixel of each window; with return_indices also where it is in its plane."""
    y, indices = max_pool2d_with_indices(
        input,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
    )
    return (y, indices) if return_indices else y


def _average(
    kind: Window, kernel_size: Pair, stride: Pair | None, padding: Pair, counts: bool, by: Any
) -> Sizes:
    whole = by is None or (isinstance(by, int) and not isinstance(by, bool) and by != 0)
    if not whole:
        raise OptionError(
            f"{kind.op}: divisor_override must be a whole number other than 0, got {by!r}"
        )
    return (*_sizes(kind, kernel_size, stride, padding, 1), int(counts), by or 0)


def _mean(kind: Window, x: Array, sizes: Sizes, ceil_mode: bool) -> Array:
    before, after = _planes(kind, x, sizes, ceil_mode)
    y = empty(after, x.dtype)
    run("avg_pool2d_forward", x.contiguous().reshape(before), y, sizes=sizes)
    return y.reshape(_own(kind, x, after))


@op(
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
        wrong(sample((1, 1, 4, 4), kernel_size=2), "must be float32 or float64", dtype="int64"),
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
    kind = Window("avg_pool2d", 2)
    sizes = _average(kind, kernel_size, stride, padding, count_include_pad, divisor_override)
    return _mean(kind, input, sizes, ceil_mode)


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
    kind = Window("avg_pool2d", 2)
    sizes = _average(kind, kernel_size, stride, padding, count_include_pad, divisor_override)
    return _gradient("avg_pool2d_backward", kind, grad, shapes[0], sizes)


# -- lines -----------------------------------------------------------------------------------------


@op(
    outputs=("y", "indices"),
    visible=2,
    saves="indices",
    samples=[
        sample(distinct((2, 3, 6)), kernel_size=2),
        sample(distinct((1, 2, 7)), kernel_size=(3,), stride=2, padding=1),
        sample(distinct((2, 5)), kernel_size=2, stride=(2,), ceil_mode=True),
        sample(distinct((1, 1, 8)), kernel_size=3, stride=1, dilation=2, padding=2),
        sample(distinct((1, 1, 1)), kernel_size=1),
        sample(distinct((0, 2, 4)), kernel_size=2),
    ],
    wrong=[
        wrong(sample((1, 1, 2), kernel_size=3), "the output would be 0; input"),
        wrong(sample((1, 1, 5), kernel_size=2, padding=2), "more than half of kernel_size 2"),
        wrong(sample((1, 1, 5), kernel_size=(2, 2)), "kernel_size must be a whole number"),
        wrong(sample((5,), kernel_size=2), "input must be (N, C, L) or (C, L)"),
        wrong(sample((1, 1, 4), kernel_size=2), "must be float32 or float64", dtype="int64"),
    ],
    method=False,
)
def max_pool1d_with_indices(
    input: Array,
    *,
    kernel_size: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    dilation: Pair = 1,
    ceil_mode: bool = False,
) -> tuple[Array, Array]:
    """The largest number of each window, and where it is in its line; the first of equals."""
    kind = Window("max_pool1d_with_indices", 1)
    return _max(kind, input, _sizes(kind, kernel_size, stride, padding, dilation), ceil_mode)


@max_pool1d_with_indices.gradient
def max_pool1d_gradient(
    grads: tuple[Array, ...],
    *,
    indices: Array,
    kernel_size: Pair,
    stride: Pair | None,
    padding: Pair,
    dilation: Pair,
    shapes: tuple[Shape, ...],
) -> Array:
    """The gradient of each window goes to its largest number."""
    kind = Window("max_pool1d", 1)
    sizes = _sizes(kind, kernel_size, stride, padding, dilation)
    return _gradient("max_pool2d_backward", kind, grads[0], shapes[0], sizes, indices)


@function(method=False)
def max_pool1d(
    input: Tensor,
    kernel_size: Pair,
    stride: Pair | None = None,
    padding: Pair = 0,
    dilation: Pair = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest number of each window; with return_indices also where it is in its line."""
    y, indices = max_pool1d_with_indices(
        input,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
    )
    return (y, indices) if return_indices else y


@op(
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
        wrong(sample((1, 1, 4), kernel_size=2), "must be float32 or float64", dtype="int64"),
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
    kind = Window("avg_pool1d", 1)
    sizes = _average(kind, kernel_size, stride, padding, count_include_pad, None)
    return _mean(kind, input, sizes, ceil_mode)


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
    kind = Window("avg_pool1d", 1)
    sizes = _average(kind, kernel_size, stride, padding, count_include_pad, None)
    return _gradient("avg_pool2d_backward", kind, grad, shapes[0], sizes)
