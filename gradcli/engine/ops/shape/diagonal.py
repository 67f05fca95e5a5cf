"""Diagonals and triangles of matrices."""

from __future__ import annotations

from collections.abc import Callable

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shape_rules
from gradcli.engine.array import Array, copy_into, empty, full, run
from gradcli.engine.composite import function
from gradcli.engine.kind import Whole
from gradcli.engine.op import Op, op
from gradcli.engine.ops.creation.creation import empty as empty_tensor
from gradcli.engine.ops.creation.creation import tensor
from gradcli.engine.ops.reduce.sum import sum as total
from gradcli.engine.ops.shape.flip import _two_dims
from gradcli.engine.sample import sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import ShapeError


def _diagonal_view(x: Array, offset: int, a: int, b: int) -> Array:
    """The view whose last dimension walks x along dimensions a and b at once."""
    shape, strides, begin = _walk_along(x.shape, x.strides, offset, a, b)
    return x.view(shape, strides, x.offset + begin)


@shape_rules.remembered
def _walk_along(
    shape: Shape, strides: Shape, offset: int, a: int, b: int
) -> tuple[Shape, Shape, int]:
    """Shape and strides of that view, and where it begins."""
    down, right = max(0, -offset), max(0, offset)
    count = max(0, min(shape[a] - down, shape[b] - right))
    rest = [d for d in range(len(shape)) if d not in (a, b)]
    nothing = not count or not shape_rules.numel(shape)
    begin = 0 if nothing else down * strides[a] + right * strides[b]
    sizes, steps = [shape[d] for d in rest], [strides[d] for d in rest]
    return (*sizes, count), (*steps, strides[a] + strides[b]), begin


@op(
    shares="view",
    double_backward="linear",
    samples=[
        sample((3, 4)),
        sample((4, 3), offset=1),
        sample((2, 5, 3), offset=-1, dim1=-2, dim2=-1),
        sample((2, 3, 4), offset=2, dim1=2, dim2=0),
        sample((1, 1)),
        sample((3, 2), offset=7),
    ],
    wrong=[
        wrong(sample((3,)), "diagonal: needs 2 or more dimensions, got 1"),
        wrong(sample((3, 3), dim1=1), "dim1 1 and dim2 1 are the same dimension"),
    ],
)
def diagonal(x: Array, *, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """A view of the diagonals of two dims, as the last dimension; offset counts upwards."""
    return _diagonal_view(x, offset, *_two_dims("diagonal", x.ndim, dim1, dim2))


@diagonal.gradient
def diagonal_gradient(
    grad: Array, *, shapes: tuple[Shape], offset: int, dim1: int, dim2: int
) -> Array:
    """Zeros, with the gradient on the diagonal."""
    whole = full(shapes[0], 0, grad.dtype)
    ndim = len(shapes[0])
    copy_into(_diagonal_view(whole, offset, dim1 % ndim, dim2 % ndim), grad)
    return whole


@op(
    double_backward="linear",
    samples=[
        sample((3,)),
        sample((2, 3), offset=1),
        sample((2, 3), offset=-2, dim1=0, dim2=2),
        sample((2, 1), dim1=-1, dim2=0),
        sample((0, 2)),
    ],
    wrong=[
        wrong(sample(()), "diag_embed: needs 1 or more dimensions"),
        wrong(sample((3,), dim1=0, dim2=0), "dim1 0 and dim2 0 are the same dimension"),
    ],
)
def diag_embed(x: Array, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """Square matrices in two new dims, with the last dimension of x on a diagonal, 0 elsewhere."""
    if x.ndim < 1:
        raise ShapeError("diag_embed: needs 1 or more dimensions, got shape ()")
    a, b = _two_dims("diag_embed", x.ndim + 1, dim1, dim2)
    size = x.shape[-1] + abs(offset)
    rest = iter(x.shape[:-1])
    shape = [size if d in (a, b) else next(rest) for d in range(x.ndim + 1)]
    whole = full(shape_rules.check_shape(shape, "diag_embed"), 0, x.dtype)
    copy_into(_diagonal_view(whole, offset, a, b), x)
    return whole


@diag_embed.gradient
def diag_embed_gradient(grad: Array, *, offset: int, dim1: int, dim2: int) -> Array:
    """The same diagonal of the gradient."""
    return _diagonal_view(grad, offset, dim1 % grad.ndim, dim2 % grad.ndim)


@function(
    samples=[
        sample((3, 4)),
        sample((4, 3), diagonal=-2),
        sample((3,), diagonal=1),
        sample((1,), diagonal=-2),
        sample((2, 3), diagonal=3),
    ]
)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A diagonal of a matrix, as a copy; of a vector the matrix with it on that diagonal."""
    if input.ndim not in (1, 2):
        raise ShapeError(f"diag: needs 1 or 2 dimensions, got shape {input.shape}")
    return (
        diag_embed(input, offset=diagonal)
        if input.ndim == 1
        else _DIAGONAL(input, offset=diagonal).clone()
    )


_DIAGONAL = diagonal  # diag's argument has that name, too


@function(
    samples=[sample((3, 5)), sample((4, 1)), sample((0, 3))],
    wrong=[wrong(sample((3,)), "needs a matrix, got shape (3,)")],
)
def trace(input: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix."""
    if input.ndim != 2:
        raise ShapeError(f"trace: needs a matrix, got shape {input.shape}")
    return total(diagonal(input))


_TRIANGLES = [
    sample((4, 5)),
    sample((2, 5, 3), diagonal=1),
    sample((3, 4), diagonal=-2),
    sample((1, 3), diagonal=9),
]


def _triangle(name: str, doc: str) -> Op[Tensor]:
    def forward(x: Array, *, diagonal: int = 0) -> Array:
        if x.ndim < 2:
            raise ShapeError(f"{name}: needs 2 or more dimensions, got shape {x.shape}")
        out = empty((shape_rules.numel(x.shape[:-2]), *x.shape[-2:]), x.dtype)
        shift = max(-x.shape[-2] - 1, min(x.shape[-1] + 1, diagonal))  # beyond, nothing changes
        run(name, x.contiguous().reshape(out.shape), out, sizes=(shift,))
        return out.reshape(x.shape)

    forward.__doc__ = doc
    refusal = wrong(sample((3,)), f"{name}: needs 2 or more dimensions")
    triangle = op(name=name, double_backward="linear", samples=_TRIANGLES, wrong=[refusal])(forward)
    triangle.gradient(lambda grad, *, diagonal: forward(grad, diagonal=diagonal))
    return triangle


tril = _triangle(
    "tril",
    "The elements on and below a diagonal (counted from the main one, upwards), 0 above it.",
)
triu = _triangle(
    "triu",
    "The elements on and above a diagonal (counted from the main one, upwards), 0 below it.",
)


_GRIDS = [
    sample(row=3, col=4),
    sample(row=4, col=2, offset=1),
    sample(row=3, col=3, offset=-2),
    sample(row=0, col=3),
]
_NO_MATRIX = sample(row=-1, col=3)


def _triangle_indices(
    row: int, col: int, columns: Callable[[int], range], device: str | None
) -> Tensor:
    """The (row, column) indices of these columns in each row."""
    empty_tensor(2, row, col, dtype=dtypes.int64)  # refuses at once what they would end in
    indices = [(i, j) for i in range(row if col else 0) for j in columns(i)]
    return tensor([[p[k] for p in indices] for k in (0, 1)], dtype=dtypes.int64, device=device)


@function(method=False, samples=_GRIDS, wrong=[wrong(_NO_MATRIX, "-1")], why="it returns indices")
def tril_indices(row: Whole, col: Whole, offset: int = 0, *, device: str | None = None) -> Tensor:
    """The indices of a lower triangle of (row, col), row by row: int64 (2, count)."""
    return _triangle_indices(row, col, lambda i: range(min(col, i + offset + 1)), device)


@function(method=False, samples=_GRIDS, wrong=[wrong(_NO_MATRIX, "-1")], why="it returns indices")
def triu_indices(row: Whole, col: Whole, offset: int = 0, *, device: str | None = None) -> Tensor:
    """The indices of an upper triangle of (row, col), row by row: int64 (2, count)."""
    return _triangle_indices(row, col, lambda i: range(max(0, i + offset), col), device)
