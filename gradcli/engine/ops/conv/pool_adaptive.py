"""Adaptive pooling: to a given size, whatever the size of the input.

Output i of n looks at the places floor(i length / n) to ceil((i + 1) length / n) - 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.engine.array import Array
from gradcli.engine.composite import function
from gradcli.engine.op import op
from gradcli.engine.ops.along import floats
from gradcli.engine.ops.conv.pool import in_image, maxima, means, of_largest
from gradcli.engine.ops.conv.window import Window
from gradcli.engine.sample import distinct, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError

Wanted = int | Sequence[int | None] | None
# To the kernel of max_pool2d's gradient only the planes matter here.
_NO_WINDOW = (1, 1, 1, 1, 0, 0, 1, 1)


def _planes(kind: Window, x: Array, output_size: Wanted) -> tuple[Shape, Shape]:
    """Shapes (planes, rows, columns) of the input and of the output."""
    floats(kind.op, x)
    n, c, h, w = kind.images(x)
    if 0 in x.shape[-kind.dims :]:
        raise ShapeError(f"{kind.op}: input must not be empty, got shape {x.shape}")
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * kind.dims
    if len(given) != kind.dims or not all(s is None or _least_1(s) for s in given):
        raise OptionError(
            f"{kind.op}: output_size must be {'a pair of ' if kind.dims == 2 else ''}whole numbers "
            f"of at least 1, or None to keep a size; got {output_size!r}"
        )
    kept = x.shape[-kind.dims :]
    size = tuple(k if s is None else s for s, k in zip(given, kept, strict=True))
    return (n * c, h, w), (n * c, *kind.image((n, *size))[1:])


def _least_1(size: object) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and 1 <= size < 1 << 31


def _mean(kind: Window, x: Array, output_size: Wanted) -> Array:
    return means("adaptive_avg_pool2d_forward", kind, x, _planes(kind, x, output_size), ())


def _max(kind: Window, x: Array, output_size: Wanted) -> tuple[Array, Array]:
    return maxima("adaptive_max_pool2d_forward", kind, x, _planes(kind, x, output_size), ())


_AVG_IMAGES, _AVG_LINES = Window("adaptive_avg_pool2d", 2), Window("adaptive_avg_pool1d", 1)
_MAX_IMAGES = Window("adaptive_max_pool2d_with_indices", 2)
_MAX_LINES = Window("adaptive_max_pool1d_with_indices", 1)


@op(
    twice="linear",
    samples=[
        sample((2, 3, 6, 4), output_size=2),
        sample((1, 2, 7, 5), output_size=(3, None)),
        sample((2, 5, 6), output_size=(1, 4)),
        sample((2, 3, 4), output_size=(5, 7)),
        sample((1, 1, 1, 1), output_size=1),
        sample((0, 2, 4, 4), output_size=2),
    ],
    wrong=[
        wrong(sample((1, 1, 2, 5), output_size=0), "output_size must be a pair of whole numbers"),
        wrong(sample((1, 1, 2, 5), output_size=(1, 2, 3)), "output_size must be a pair"),
        wrong(sample((5, 5), output_size=2), "input must be (N, C, H, W)"),
        wrong(sample((1, 2, 0, 3), output_size=2), "input must not be empty"),
        wrong(
            sample((1, 1, 4, 4), output_size=2),
            "must be float32, float64 or bfloat16",
            dtype="int64",
        ),
    ],
    method=False,
)
def adaptive_avg_pool2d(input: Array, *, output_size: Wanted) -> Array:
    """The mean of each window, of which there are as many as wanted."""
    return _mean(_AVG_IMAGES, input, output_size)


@adaptive_avg_pool2d.gradient
def adaptive_avg_pool2d_gradient(grad: Array, *, shapes: tuple[Shape, ...]) -> Array:
    """The gradient of each window in equal shares to its pixels."""
    return in_image("adaptive_avg_pool2d_backward", _AVG_IMAGES, grad, shapes[0], ())


@op(
    twice="linear",
    samples=[
        sample((2, 3, 6), output_size=2),
        sample((1, 2, 7), output_size=(3,)),
        sample((5, 6), output_size=9),
        sample((1, 1, 1), output_size=1),
        sample((0, 2, 4), output_size=2),
    ],
    wrong=[
        wrong(sample((1, 1, 5), output_size=(2, 2)), "output_size must be whole numbers"),
        wrong(sample((5,), output_size=2), "input must be (N, C, L) or (C, L)"),
        wrong(sample((2, 3, 0), output_size=2), "input must not be empty"),
        wrong(
            sample((1, 1, 4), output_size=2), "must be float32, float64 or bfloat16", dtype="int64"
        ),
    ],
    method=False,
)
def adaptive_avg_pool1d(input: Array, *, output_size: Wanted) -> Array:
    """The mean of each window of a line, of which there are as many as wanted."""
    return _mean(_AVG_LINES, input, output_size)


@adaptive_avg_pool1d.gradient
def adaptive_avg_pool1d_gradient(grad: Array, *, shapes: tuple[Shape, ...]) -> Array:
    """The gradient of each window in equal shares to its places."""
    return in_image("adaptive_avg_pool2d_backward", _AVG_LINES, grad, shapes[0], ())


@op(
    outputs=("y", "indices"),
    visible=2,
    saves="indices",
    samples=[
        sample(distinct((2, 3, 6, 4)), output_size=2),
        sample(distinct((1, 2, 7, 5)), output_size=(3, None)),
        sample(distinct((2, 5, 6)), output_size=(1, 4)),
        sample(distinct((2, 3, 4)), output_size=(5, 7)),
        sample(distinct((1, 1, 1, 1)), output_size=1),
        sample(distinct((0, 2, 4, 4)), output_size=2),
    ],
    wrong=[
        wrong(sample((1, 1, 2, 5), output_size=0), "output_size must be a pair of whole numbers"),
        wrong(sample((5, 5), output_size=2), "input must be (N, C, H, W)"),
        wrong(sample((1, 2, 0, 3), output_size=2), "input must not be empty"),
        wrong(
            sample((1, 1, 4, 4), output_size=2),
            "must be float32, float64 or bfloat16",
            dtype="int64",
        ),
    ],
    method=False,
)
def adaptive_max_pool2d_with_indices(input: Array, *, output_size: Wanted) -> tuple[Array, Array]:
    """The largest pixel of each window, and its index within the plane; the first of equals."""
    return _max(_MAX_IMAGES, input, output_size)


@adaptive_max_pool2d_with_indices.gradient
def adaptive_max_pool2d_gradient(
    grads: tuple[Array, ...], *, indices: Array, shapes: tuple[Shape, ...]
) -> Array:
    """The gradient of each window goes to its largest pixel."""
    return in_image("max_pool2d_backward", _MAX_IMAGES, grads[0], shapes[0], _NO_WINDOW, indices)


@adaptive_max_pool2d_with_indices.gradient_graph
def adaptive_max_pool2d_gradient_graph(
    grads: tuple[Tensor, ...], *, indices: Tensor, shapes: tuple[Shape, ...]
) -> Tensor:
    """The gradient of each window goes to its largest pixel."""
    return of_largest(_MAX_IMAGES, grads[0], indices, shapes[0])


@op(
    outputs=("y", "indices"),
    visible=2,
    saves="indices",
    samples=[
        sample(distinct((2, 3, 6)), output_size=2),
        sample(distinct((1, 2, 7)), output_size=(3,)),
        sample(distinct((5, 6)), output_size=9),
        sample(distinct((1, 1, 1)), output_size=1),
        sample(distinct((0, 2, 4)), output_size=2),
    ],
    wrong=[
        wrong(sample((1, 1, 5), output_size=(2, 2)), "output_size must be whole numbers"),
        wrong(sample((5,), output_size=2), "input must be (N, C, L) or (C, L)"),
        wrong(sample((2, 3, 0), output_size=2), "input must not be empty"),
        wrong(
            sample((1, 1, 4), output_size=2), "must be float32, float64 or bfloat16", dtype="int64"
        ),
    ],
    method=False,
)
def adaptive_max_pool1d_with_indices(input: Array, *, output_size: Wanted) -> tuple[Array, Array]:
    """The largest number of each window, and where it is in its line; the first of equals."""
    return _max(_MAX_LINES, input, output_size)


@adaptive_max_pool1d_with_indices.gradient
def adaptive_max_pool1d_gradient(
    grads: tuple[Array, ...], *, indices: Array, shapes: tuple[Shape, ...]
) -> Array:
    """The gradient of each window goes to its largest number."""
    return in_image("max_pool2d_backward", _MAX_LINES, grads[0], shapes[0], _NO_WINDOW, indices)


@adaptive_max_pool1d_with_indices.gradient_graph
def adaptive_max_pool1d_gradient_graph(
    grads: tuple[Tensor, ...], *, indices: Tensor, shapes: tuple[Shape, ...]
) -> Tensor:
    """The gradient of each window goes to its largest number."""
    return of_largest(_MAX_LINES, grads[0], indices, shapes[0])


@function(
    tuple_if=["return_indices"],
    samples=[
        *adaptive_max_pool2d_with_indices.samples,
        sample(distinct((2, 4, 5)), output_size=(3, 2), return_indices=True),
    ],
    method=False,
)
def adaptive_max_pool2d(
    input: Tensor, output_size: Wanted, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest pixel of each window; with return_indices also where it is in its plane."""
    y, indices = adaptive_max_pool2d_with_indices(input, output_size=output_size)
    return (y, indices) if return_indices else y


@function(
    tuple_if=["return_indices"],
    samples=[
        *adaptive_max_pool1d_with_indices.samples,
        sample(distinct((2, 3, 5)), output_size=2, return_indices=True),
    ],
    method=False,
)
def adaptive_max_pool1d(
    input: Tensor, output_size: Wanted, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest number of each window; with return_indices also where it is in its line."""
    y, indices = adaptive_max_pool1d_with_indices(input, output_size=output_size)
    return (y, indices) if return_indices else y
