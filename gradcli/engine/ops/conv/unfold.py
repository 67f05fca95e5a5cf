"""Windows of a tensor as a dimension of their own, or as columns, and back."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.engine import shape as shape_rules
from gradcli.engine import shape as shapes
from gradcli.engine.array import Array, empty, run
from gradcli.engine.composite import function
from gradcli.engine.op import op
from gradcli.engine.ops.along import along
from gradcli.engine.ops.conv.geometry import Geometry, Space
from gradcli.engine.ops.creation.creation import zeros
from gradcli.engine.ops.creation.ranges import arange
from gradcli.engine.ops.index.index_add import index_add
from gradcli.engine.ops.index.slices import getitem
from gradcli.engine.ops.shape.pad import pad
from gradcli.engine.ops.shape.permute import permute
from gradcli.engine.ops.shape.reshape import reshape
from gradcli.engine.sample import sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, RangeError, ShapeError


def _windows(length: int, size: int, step: int) -> int:
    """How many windows there are."""
    if not 0 <= size <= length:
        raise RangeError(f"unfold: size {size} does not fit into a dimension of {length}")
    if step < 1:
        raise OptionError(f"unfold: step must be at least 1, got {step}")
    return (length - size) // step + 1


@op(
    shares="repeats",
    double_backward="linear",
    samples=[
        sample((7,), dimension=0, size=3, step=2),
        sample((2, 6), dimension=1, size=2, step=1),
        sample((5, 1, 3), dimension=0, size=4, step=1),
        sample((2, 5), dimension=-1, size=2, step=3),
        sample((0, 3), dimension=1, size=2, step=1),
    ],
    wrong=[
        wrong(sample((3,), dimension=0, size=4, step=1), "size 4 does not fit into a dimension"),
        wrong(sample((3,), dimension=0, size=1, step=0), "step must be at least 1, got 0"),
        wrong(sample((), dimension=0, size=1, step=1), "unfold: needs 1 or more dimensions"),
    ],
)
def unfold(x: Array, *, dimension: int, size: int, step: int) -> Array:
    """A view of all windows of `size` along a dimension, `step` apart; a window is the last dim."""
    if x.ndim == 0:
        raise ShapeError("unfold: needs 1 or more dimensions, got shape ()")
    d = shape_rules.dim_index(dimension, x.ndim, "unfold")
    count = _windows(x.shape[d], size, step)
    shape = (*x.shape[:d], count, *x.shape[d + 1 :], size)
    strides = (*x.strides[:d], step * x.strides[d], *x.strides[d + 1 :], x.strides[d])
    return x.view(shape_rules.check_shape(shape, "unfold"), strides)


@unfold.gradient
def unfold_gradient(
    grad: Array, *, shapes: tuple[Shape], dimension: int, size: int, step: int
) -> Array:
    """Each element gets the sum over the windows it is in, in their order."""
    d = dimension % len(shapes[0])
    count = grad.shape[d]
    columns = (arange(count) * step).reshape(count, 1) + arange(size)
    lines = along(shapes[0], (d,)).lines
    order = [*range(d + 1), grad.ndim - 1, *range(d + 1, grad.ndim - 1)]
    rows = grad.permute(order).contiguous().reshape((lines[0], count * size, lines[2]))
    out = empty(lines, grad.dtype)
    run("index_select_backward", rows, columns.reshape(-1).array, out, sizes=(-1,))
    return out.reshape(shapes[0])


def windows(x: Tensor, geometry: Geometry, counts: Sequence[int], value: float = 0.0) -> Tensor:
    """(..., sizes) as (..., counts, window): what each window sees; `value` beyond the ends."""
    first = x.ndim - len(counts)
    borders: list[int] = []
    rows = list(zip(counts, geometry.reach(), geometry.stride, strict=True))
    for (count, reach, step), front, length in zip(
        rows, geometry.padding, x.shape[first:], strict=True
    ):
        behind = (count - 1) * step + reach - front - length  # below 0 where elements are left over
        borders = [front, behind, *borders]
    x = pad(x, borders, value=value)
    for d, (_, reach, step) in enumerate(rows, first):
        x = unfold(x, dimension=d, size=reach, step=step)
    return getitem(x, index=(Ellipsis, *(slice(None, None, gap) for gap in geometry.dilation)))


def _columns(x: Tensor, geometry: Geometry) -> Tensor:
    """(N, C, H, W) as (N, C, kernel, kernel, windows, windows)."""
    counts = geometry.counts(x.shape[2:])
    for count, reach in zip(counts, geometry.reach(), strict=True):
        if count < 1:
            padded = f"{x.shape} padded by {geometry.padding}"
            raise ShapeError(f"unfold: a window of {reach} does not fit into {padded}")
    return permute(windows(x, geometry, counts), (0, 1, 4, 5, 2, 3))


@function(
    samples=[
        sample((2, 3, 4, 5), kernel_size=2),
        sample((1, 2, 5, 6), kernel_size=(2, 3), stride=(2, 1), padding=1),
        sample((2, 5, 6), kernel_size=2, dilation=(2, 1), padding=(0, 2)),
        sample((1, 1, 1, 1), kernel_size=1),
    ],
    method=False,
)
def im2col(
    input: Tensor,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Windows of images (N, C, H, W) as columns (N, C * window, windows): F.unfold."""
    if input.ndim not in (3, 4):
        raise ShapeError(f"unfold: input must be (N, C, H, W) or (C, H, W), got {input.shape}")
    x = input if input.ndim == 4 else reshape(input, (1, *input.shape))
    space = Space("unfold", 2)
    window = space.numbers("kernel_size", kernel_size)
    columns = _columns(x, space.geometry(window, stride, padding, dilation))
    n, c, kh, kw, h, w = columns.shape
    shape = (c * kh * kw, h * w)
    return reshape(columns, shape if input.ndim == 3 else (n, *shape))


@function(
    samples=[
        sample((2, 8, 6), output_size=(3, 4), kernel_size=2),
        sample((1, 6, 4), output_size=(3, 2), kernel_size=(2, 3), stride=(2, 1), padding=1),
        sample((4, 9), output_size=(4, 5), kernel_size=2, dilation=(1, 2)),
        sample((1, 1), output_size=1, kernel_size=1),
    ],
    method=False,
)
def col2im(
    input: Tensor,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Columns (N, C * window, windows) laid back into images and added up: F.fold."""
    if input.ndim not in (2, 3):
        raise ShapeError(f"fold: input must be (N, C * window, windows), got {input.shape}")
    space = Space("fold", 2)
    size = space.numbers("output_size", output_size)
    border = space.numbers("padding", padding, 0)
    kernel = space.numbers("kernel_size", kernel_size)
    high, wide = (size[d] + 2 * border[d] for d in (0, 1))
    image = reshape(arange(high * wide), (1, 1, high, wide))
    columns = _columns(image, space.geometry(kernel, stride, 0, dilation))
    count, window = columns.shape[4] * columns.shape[5], kernel[0] * kernel[1]
    if input.shape[-1] != count or input.shape[-2] % window:
        raise ShapeError(
            f"fold: input must be (N, a multiple of {window}, {count}) for an output of {size}, "
            f"got {input.shape}"
        )
    outside = (*input.shape[:-2], input.shape[-2] // window)
    rows = reshape(input, (shapes.numel(outside), window * count))
    flat = zeros(rows.shape[0], high * wide, dtype=input.dtype)
    whole = index_add(flat, 1, reshape(columns, (window * count,)), rows)
    cut = tuple(slice(border[d], border[d] + size[d]) for d in (0, 1))
    return getitem(reshape(whole, (*outside, high, wide)), index=(Ellipsis, *cut))
