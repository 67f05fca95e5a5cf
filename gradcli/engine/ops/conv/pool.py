"""Max pooling, and what all pools share: one number for each window of an image or a line."""

from __future__ import annotations

from collections.abc import Callable

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine.array import Array, empty, run
from gradcli.engine.composite import function
from gradcli.engine.op import op
from gradcli.engine.ops.along import floats
from gradcli.engine.ops.conv.window import Pair, Window, reach
from gradcli.engine.ops.conv.window_composed import largest, picked
from gradcli.engine.sample import distinct, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.engine.twice import transposed
from gradcli.errors import OptionError

Sizes = tuple[int, ...]


def _output(length: int, window: int, stride: int, padding: int, ceil_mode: bool) -> int:
    """How many windows fit; with ceil_mode also one that begins inside and hangs over."""
    room = length + 2 * padding - window
    if not ceil_mode:
        return room // stride + 1
    size = -(-room // stride) + 1
    return size - 1 if (size - 1) * stride >= length + padding else size


def sizes_of(
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


def planes_of(kind: Window, x: Array, sizes: Sizes, ceil_mode: bool) -> tuple[Shape, Shape]:
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


def own(kind: Window, x: Array, planes: Shape) -> Shape:
    """(planes, rows, columns) in the dimensions of the input."""
    return (*x.shape[: -kind.dims], *planes[3 - kind.dims :])


def means(kernel: str, kind: Window, x: Array, planes: tuple[Shape, Shape], sizes: Sizes) -> Array:
    """What a forward kernel makes of each plane, in the dimensions of the input."""
    before, after = planes
    y = empty(after, x.dtype)
    run(kernel, x.contiguous().reshape(before), y, sizes=sizes)
    return y.reshape(own(kind, x, after))


def maxima(
    kernel: str, kind: Window, x: Array, planes: tuple[Shape, Shape], sizes: Sizes
) -> tuple[Array, Array]:
    """The same for a kernel that also says where it found them."""
    before, after = planes
    y, indices = empty(after, x.dtype), empty(after, dtypes.int64)
    run(kernel, x.contiguous().reshape(before), y, indices, sizes=sizes)
    shape = own(kind, x, after)
    return y.reshape(shape), indices.reshape(shape)


def _max(kind: Window, x: Array, sizes: Sizes, ceil_mode: bool) -> tuple[Array, Array]:
    return maxima("max_pool2d_forward", kind, x, planes_of(kind, x, sizes, ceil_mode), sizes)


def in_image(
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


def _composed_max(kind: Window) -> Callable[..., tuple[Tensor, Tensor]]:
    def composed(
        input: Tensor,
        *,
        kernel_size: Pair,
        stride: Pair | None = None,
        padding: Pair = 0,
        dilation: Pair = 1,
        ceil_mode: bool = False,
    ) -> tuple[Tensor, Tensor]:
        sizes = sizes_of(kind, kernel_size, stride, padding, dilation)
        before, after = planes_of(kind, input.array, sizes, ceil_mode)
        shape = own(kind, input.array, after)
        y, indices = largest(input.reshape(before), after, sizes)
        return y.reshape(shape), indices.reshape(shape)

    composed.__name__ = "largest"
    return composed


def of_largest(kind: Window, grad: Tensor, indices: Tensor, shape: Shape) -> Tensor:
    """What a gradient of maxima adds to the planes that they came from, with a history."""
    planes = shapes.numel(shape[: -kind.dims])
    return transposed(lambda x: picked(x, indices, planes), shape, grad)


_IMAGES, _LINES = Window("max_pool2d_with_indices", 2), Window("max_pool1d_with_indices", 1)


@op(
    outputs=("y", "indices"),
    visible=2,
    saves="indices",
    composed=_composed_max(_IMAGES),
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
        wrong(
            sample((1, 1, 4, 4), kernel_size=2),
            "must be float32, float64 or bfloat16",
            dtype="int64",
        ),
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
    return _max(
        _IMAGES, input, sizes_of(_IMAGES, kernel_size, stride, padding, dilation), ceil_mode
    )


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
    sizes = sizes_of(_IMAGES, kernel_size, stride, padding, dilation)
    return in_image("max_pool2d_backward", _IMAGES, grads[0], shapes[0], sizes, indices)


@max_pool2d_with_indices.gradient_graph
def max_pool2d_gradient_graph(
    grads: tuple[Tensor, ...], *, indices: Tensor, shapes: tuple[Shape, ...]
) -> Tensor:
    """The gradient of each window goes to its largest pixel."""
    return of_largest(_IMAGES, grads[0], indices, shapes[0])


_WITH_PLACES = (
    sample(distinct((2, 4, 5)), kernel_size=(2, 3), return_indices=True),
    sample(distinct((2, 3, 5)), kernel_size=2, padding=1, return_indices=True),
)


@function(
    samples=[*max_pool2d_with_indices.samples, _WITH_PLACES[0]],
    method=False,
    tuple_if=["return_indices"],
)
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


@op(
    outputs=("y", "indices"),
    visible=2,
    saves="indices",
    composed=_composed_max(_LINES),
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
        wrong(
            sample((1, 1, 4), kernel_size=2), "must be float32, float64 or bfloat16", dtype="int64"
        ),
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
    return _max(_LINES, input, sizes_of(_LINES, kernel_size, stride, padding, dilation), ceil_mode)


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
    sizes = sizes_of(_LINES, kernel_size, stride, padding, dilation)
    return in_image("max_pool2d_backward", _LINES, grads[0], shapes[0], sizes, indices)


@max_pool1d_with_indices.gradient_graph
def max_pool1d_gradient_graph(
    grads: tuple[Tensor, ...], *, indices: Tensor, shapes: tuple[Shape, ...]
) -> Tensor:
    """The gradient of each window goes to its largest number."""
    return of_largest(_LINES, grads[0], indices, shapes[0])


@function(
    samples=[*max_pool1d_with_indices.samples, _WITH_PLACES[1]],
    method=False,
    tuple_if=["return_indices"],
)
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
