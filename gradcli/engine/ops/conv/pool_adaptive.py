"""Adaptive pooling: to a given size, whatever the size of the input.

Output i of n looks at the places floor(i length / n) to ceil((i + 1) length / n) - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gradcli.engine import dtype as dtypes
from gradcli.engine.array import Array
from gradcli.engine.composite import function
from gradcli.engine.op import Op, op
from gradcli.engine.ops.along import floats
from gradcli.engine.ops.conv.cases import samples_in, wrong_in
from gradcli.engine.ops.conv.geometry import Space, whole
from gradcli.engine.ops.conv.pool import declare_graph, run_backward, run_forward
from gradcli.engine.sample import distinct, sample, with_numbers, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError

OutputSize = int | Sequence[int | None] | None
# To the kernel of max_pool2d's gradient only the planes matter here.
_NO_WINDOW = (1, 1, 1, 1, 0, 0, 1, 1)


def _counts(space: Space, x: Array, output_size: OutputSize) -> Shape:
    """How many windows there are in each dimension."""
    floats(space.name, x)
    space.batched(x.shape)
    lengths = x.shape[-space.dims :]
    if 0 in lengths:
        raise ShapeError(f"{space.name}: input must not be empty, got shape {x.shape}")
    if whole(output_size, 1):
        return (output_size,) * space.dims
    sizes = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * space.dims
    if len(sizes) != space.dims or not all(s is None or whole(s, 1) for s in sizes):
        several = space.words.several
        raise OptionError(
            f"{space.name}: output_size must be {several and f'a {several} of '}whole numbers "
            f"of at least 1, or None to keep a size; got {output_size!r}"
        )
    return tuple([n if s is None else s for s, n in zip(sizes, lengths, strict=True)])


_SAMPLES = [
    sample((2, 3, 6, 4), output_size=2),
    sample((1, 2, 7, 5), output_size=(None, 3)),
    sample((2, 5, 6), output_size=(1, 4)),
    sample((2, 3, 4), output_size=(5, 7)),
    sample((1, 1, 1, 1), output_size=1),
]
_DISTINCT = with_numbers(distinct, _SAMPLES)
_WITH_INDICES = [sample(distinct((2, 4, 5)), output_size=(3, 2), return_indices=True)]
_WRONG = [
    wrong(sample((1, 1, 2, 5), output_size=0), "output_size must be a pair of whole numbers"),
    wrong(
        sample((1, 1, 2, 5), output_size=(1, 2, 3)), "output_size must be a pair of whole numbers"
    ),
    wrong(sample((5, 5), output_size=2), "input must be (N, C, H, W) or (C, H, W)"),
    wrong(sample((1, 2, 3, 0), output_size=2), "input must not be empty"),
]


def _adaptive_avg_pool(dims: int) -> Op[Tensor]:
    space = Space(f"adaptive_avg_pool{dims}d", dims)

    @op(
        name=space.name,
        double_backward="linear",
        samples=samples_in(dims, _SAMPLES),
        wrong=wrong_in(dims, _WRONG),
        method=False,
    )
    def avg_pool(input: Array, *, output_size: OutputSize) -> Array:
        """The mean of each window, of which there are `output_size`."""
        counts = _counts(space, input, output_size)
        return run_forward("adaptive_avg_pool2d_forward", space, input, counts, ())[0]

    @avg_pool.gradient
    def gradient(grad: Array, *, shapes: tuple[Shape, ...]) -> Array:
        """The gradient of each window in equal shares to its elements."""
        return run_backward("adaptive_avg_pool2d_backward", space, grad, shapes[0], ())

    return avg_pool


adaptive_avg_pool2d = _adaptive_avg_pool(2)
adaptive_avg_pool1d = _adaptive_avg_pool(1)


def _adaptive_max_pool(
    dims: int,
) -> tuple[Op[tuple[Tensor, ...]], Callable[..., Tensor | tuple[Tensor, Tensor]]]:
    """The op, and the function that gives indices only where they are asked for."""
    space = Space(f"adaptive_max_pool{dims}d_with_indices", dims)

    @op(
        name=space.name,
        outputs=("y", "indices"),
        visible=2,
        saves="indices",
        samples=samples_in(dims, _DISTINCT),
        wrong=wrong_in(dims, _WRONG),
        method=False,
    )
    def with_indices(input: Array, *, output_size: OutputSize) -> tuple[Array, ...]:
        """The largest number of each window, and its index in its channel; the first of equals."""
        counts = _counts(space, input, output_size)
        return run_forward("adaptive_max_pool2d_forward", space, input, counts, (), dtypes.int64)

    @with_indices.gradient
    def gradient(grads: tuple[Array, ...], *, indices: Array, shapes: tuple[Shape, ...]) -> Array:
        """The gradient of each window goes to its largest number."""
        return run_backward("max_pool2d_backward", space, grads[0], shapes[0], _NO_WINDOW, indices)

    declare_graph(with_indices, space)

    @function(
        f"adaptive_max_pool{dims}d",
        samples=samples_in(dims, [*_DISTINCT, *_WITH_INDICES]),
        method=False,
        tuple_if=["return_indices"],
    )
    def max_pool(
        input: Tensor, output_size: OutputSize, return_indices: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """The largest number of each window; with return_indices also its index in its channel."""
        y, indices = with_indices(input, output_size)
        return (y, indices) if return_indices else y

    return with_indices, max_pool


adaptive_max_pool2d_with_indices, adaptive_max_pool2d = _adaptive_max_pool(2)
adaptive_max_pool1d_with_indices, adaptive_max_pool1d = _adaptive_max_pool(1)
