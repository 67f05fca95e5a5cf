"""Max pooling, and what all pools share: one number for each window of an image or a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine.array import Array, empty, run
from gradcli.engine.composite import function
from gradcli.engine.double_backward import transposed
from gradcli.engine.dtype import DType
from gradcli.engine.op import Op, op
from gradcli.engine.ops.along import floats
from gradcli.engine.ops.conv import window_decomposition
from gradcli.engine.ops.conv.cases import samples_in, wrong_in
from gradcli.engine.ops.conv.geometry import Geometry, PerDim, Space, flat
from gradcli.engine.sample import distinct, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError

Sizes = tuple[int, ...]


def plan(
    space: Space,
    x: Shape,
    kernel_size: PerDim,
    stride: PerDim | None,
    padding: PerDim,
    dilation: PerDim = 1,
    ceil_mode: bool = False,
) -> tuple[Geometry, Shape]:
    """Where windows lie and how many there are; without a stride they follow each other."""
    window = space.numbers("kernel_size", kernel_size)
    # An empty stride is torch's way of saying that there is none.
    step = kernel_size if stride is None or stride in ((), []) else stride
    geometry = space.geometry(window, step, padding, dilation)
    for front, reach in zip(geometry.padding, geometry.reach(), strict=True):
        if 2 * front > reach:
            raise OptionError(
                f"{space.name}: padding {padding} is more than half of kernel_size {kernel_size}"
            )
    counts = geometry.counts(space.batched(x)[2:], ceil_mode)
    space.refuse_empty(counts, x, f"kernel_size {window}, padding {geometry.padding}")
    return geometry, counts


def sizes_of(geometry: Geometry) -> Sizes:
    """Window, stride, padding and dilation as the kernels want them."""
    return (*flat(geometry.window), *geometry.sizes())


def run_forward(
    kernel: str, space: Space, x: Array, counts: Shape, sizes: Sizes, *more: DType
) -> tuple[Array, ...]:
    """What a forward kernel makes of each plane: an output like `x`, and some of other types."""
    front, size = x.shape[: -space.dims], x.shape[-space.dims :]
    planes = (shapes.numel(front), *flat(counts))
    outputs = [empty(planes, dtype) for dtype in (x.dtype, *more)]
    run(kernel, x.contiguous().reshape((planes[0], *flat(size))), *outputs, sizes=sizes)
    shape = (*front, *counts)
    return tuple([y.reshape(shape) for y in outputs])


def run_backward(
    kernel: str, space: Space, grad: Array, shape: Shape, sizes: Sizes, *indices: Array
) -> Array:
    """What a backward kernel makes of the gradient, in the shape of the input."""
    planes, out = space.planes(grad.shape), empty(space.planes(shape), grad.dtype)
    index_planes = [i.reshape(planes) for i in indices]
    run(kernel, grad.contiguous().reshape(planes), *index_planes, out, sizes=sizes)
    return out.reshape(shape)


def declare_graph(pool: Op[tuple[Tensor, ...]], space: Space) -> None:
    """The gradient of maxima with a history, which goes to where they lie in the input."""

    @pool.double_backward
    def double_backward(
        grads: tuple[Tensor, ...], *, indices: Tensor, shapes: tuple[Shape, ...]
    ) -> Tensor:
        """The gradient of each window goes to its largest number."""
        planes = space.planes(shapes[0])[0]
        return transposed(
            lambda x: window_decomposition.pick(x, indices, planes), shapes[0], grads[0]
        )


_SAMPLES = [
    sample(distinct((2, 3, 6, 4)), kernel_size=2),
    sample(distinct((1, 2, 7, 5)), kernel_size=(3, 2), stride=(2, 1), padding=1),
    sample(distinct((2, 5, 6)), kernel_size=2, stride=2, ceil_mode=True),
    sample(distinct((1, 1, 7, 8)), kernel_size=3, stride=1, dilation=2, padding=(2, 0)),
    sample(distinct((1, 1, 1, 1)), kernel_size=1),
]
_WITH_INDICES = [sample(distinct((2, 4, 5)), kernel_size=(2, 3), padding=1, return_indices=True)]
_WRONG = [
    wrong(sample((1, 1, 5, 2), kernel_size=3), "the output would be 1 x 0"),
    wrong(sample((1, 1, 5, 5), kernel_size=2, padding=2), "more than half of kernel_size 2"),
    wrong(sample((1, 1, 5, 5), kernel_size=0), "kernel_size must be"),
    wrong(sample((1, 1, 5, 5), kernel_size=(2, 2, 2)), "kernel_size must be a whole number"),
    wrong(sample((5, 5), kernel_size=2), "input must be (N, C, H, W) or (C, H, W)"),
]


def _max_pool_with_indices(dims: int) -> Op[tuple[Tensor, ...]]:
    space = Space(f"max_pool{dims}d_with_indices", dims)

    def maxima(input: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
        options = {**max_pool.options, **options}
        return window_decomposition.maxima(input, *plan(space, input.shape, **options))

    @op(
        name=space.name,
        outputs=("y", "indices"),
        visible=2,
        saves="indices",
        decomposition=maxima,
        samples=samples_in(dims, _SAMPLES),
        wrong=wrong_in(dims, _WRONG),
        method=False,
    )
    def max_pool(
        input: Array,
        *,
        kernel_size: PerDim,
        stride: PerDim | None = None,
        padding: PerDim = 0,
        dilation: PerDim = 1,
        ceil_mode: bool = False,
    ) -> tuple[Array, ...]:
        """The largest number of each window, and its index in its channel; the first of equals."""
        options = kernel_size, stride, padding, dilation, ceil_mode
        geometry, counts = plan(space, floats(space.name, input).shape, *options)
        sizes = sizes_of(geometry)
        return run_forward("max_pool2d_forward", space, input, counts, sizes, dtypes.int64)

    @max_pool.gradient
    def gradient(
        grads: tuple[Array, ...], *, indices: Array, shapes: tuple[Shape, ...], **options: Any
    ) -> Array:
        """The gradient of each window goes to its largest number."""
        sizes = sizes_of(plan(space, shapes[0], **options)[0])
        return run_backward("max_pool2d_backward", space, grads[0], shapes[0], sizes, indices)

    declare_graph(max_pool, space)
    return max_pool


max_pool2d_with_indices = _max_pool_with_indices(2)
max_pool1d_with_indices = _max_pool_with_indices(1)


def _max_pool(
    dims: int, with_indices: Op[tuple[Tensor, ...]]
) -> Callable[..., Tensor | tuple[Tensor, Tensor]]:
    @function(
        f"max_pool{dims}d",
        samples=[*with_indices.samples, *samples_in(dims, _WITH_INDICES)],
        method=False,
        tuple_if=["return_indices"],
    )
    def max_pool(
        input: Tensor,
        kernel_size: PerDim,
        stride: PerDim | None = None,
        padding: PerDim = 0,
        dilation: PerDim = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """The largest number of each window; with return_indices also its index in its channel."""
        y, indices = with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
        return (y, indices) if return_indices else y

    return max_pool


max_pool2d = _max_pool(2, max_pool2d_with_indices)
max_pool1d = _max_pool(1, max_pool1d_with_indices)
