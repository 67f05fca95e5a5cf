"""Elements in another order, or seen as a diagonal or as windows: flip, roll, diagonal, unfold."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.engine import shape as shape_rules
from gradcli.engine.array import Array, copy_into, empty, full, run
from gradcli.engine.composite import function
from gradcli.engine.op import op
from gradcli.engine.ops.along import along
from gradcli.engine.ops.creation.creation import arange
from gradcli.engine.ops.shape.movement import transpose
from gradcli.engine.sample import sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, RangeError, ShapeError

# -- flip and roll -------------------------------------------------------------------------------


@op(
    twice="linear",
    variadic=True,
    samples=[
        sample((3, 4), dims=(0,)),
        sample((2, 3, 4), dims=(0, -1)),
        sample((1, 5), dims=(1,)),
        sample((3,), dims=()),
        sample((0, 3), dims=(0, 1)),
    ],
    wrong=[
        wrong(sample((2, 3), dims=(2,)), "flip: dim 2 is outside -2..1"),
        wrong(sample((2, 3), dims=(0, -2)), "flip: dim (0, -2) names one dimension twice"),
    ],
)
def flip(x: Array, *, dims: Sequence[int]) -> Array:
    """The elements in reverse order along `dims`, as a copy."""
    strides, offset = list(x.strides), x.offset
    for d in shape_rules.dim_set(tuple(dims), x.ndim, "flip") if dims else ():
        offset += max(0, x.shape[d] - 1) * strides[d] if x.numel else 0
        strides[d] = -strides[d]
    return x.view(x.shape, tuple(strides), offset).copy()


@flip.gradient
def flip_gradient(grad: Array, *, dims: Sequence[int]) -> Array:
    """Reversed once more."""
    return flip.forward(grad, dims=dims)  # type: ignore[no-any-return]


@function(samples=[sample((3, 4)), sample((2, 1, 3)), sample((0, 3))])
def fliplr(input: Tensor) -> Tensor:
    """Columns in reverse order."""
    if input.ndim < 2:
        raise ShapeError(f"fliplr: needs 2 or more dimensions, got shape {input.shape}")
    result: Tensor = flip(input, 1)
    return result


@function(samples=[sample((3, 4)), sample((5,)), sample((2, 1, 3)), sample((3, 0))])
def flipud(input: Tensor) -> Tensor:
    """Rows in reverse order."""
    if input.ndim < 1:
        raise ShapeError("flipud: needs 1 or more dimensions, got shape ()")
    result: Tensor = flip(input, 0)
    return result


def _shifts(
    x: Shape, shifts: int | Sequence[int], dims: int | Sequence[int]
) -> list[tuple[int, int]]:
    """(dimension, shift) one by one."""
    by = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    along_dims = (dims,) if isinstance(dims, int) else tuple(dims)
    if len(by) != len(along_dims):
        raise OptionError(f"roll: {len(by)} shifts for {len(along_dims)} dims")
    found = [shape_rules.dim_index(d, len(x), "roll") for d in along_dims]
    return [(d, s) for d, s in zip(found, by, strict=True) if x]


def _rolled(x: Array, d: int, shift: int) -> Array:
    """Each element `shift` places further along d, from the end to the front."""
    size = x.shape[d]
    shift %= max(size, 1)
    if not shift or not x.numel:
        return x.copy()
    out = empty(x.shape, x.dtype)
    for at, start, count in ((shift, 0, size - shift), (0, size - shift, shift)):
        shape = (*x.shape[:d], count, *x.shape[d + 1 :])
        source = x.view(shape, x.strides, x.offset + start * x.strides[d])
        run("copy", source, out.view(shape, out.strides, at * out.strides[d]))
    return out


@op(
    twice="linear",
    samples=[
        sample((3, 4), shifts=1, dims=0),
        sample((2, 3, 4), shifts=(-1, 6), dims=(1, -1)),
        sample((2, 5), shifts=3),
        sample((3, 4), shifts=(1, 1), dims=(0, 0)),
        sample((1, 3), shifts=2, dims=0),
        sample((0, 3), shifts=1, dims=1),
    ],
    wrong=[
        wrong(sample((2, 3), shifts=(1, 2), dims=0), "roll: 2 shifts for 1 dims"),
        wrong(sample((2, 3), shifts=1, dims=2), "roll: dim 2 is outside -2..1"),
        wrong(sample((2, 3), shifts=(1, 2)), "roll: without dims one shift is wanted, got (1, 2)"),
    ],
)
def roll(
    x: Array, *, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None
) -> Array:
    """Each element moved on by `shifts` along `dims`, from the end to the front; flat without."""
    if dims is None:
        by = (shifts,) if isinstance(shifts, int) else tuple(shifts)
        if len(by) != 1:
            raise OptionError(f"roll: without dims one shift is wanted, got {by}")
        return _rolled(x.reshape((x.numel,)), 0, by[0]).reshape(x.shape)
    pairs = _shifts(x.shape, shifts, dims)
    for d, shift in pairs:
        x = _rolled(x, d, shift)
    return x if pairs else x.copy()


@roll.gradient
def roll_gradient(
    grad: Array, *, shifts: int | Sequence[int], dims: int | Sequence[int] | None
) -> Array:
    """Rolled back."""
    back = -shifts if isinstance(shifts, int) else tuple(-s for s in shifts)
    return roll.forward(grad, shifts=back, dims=dims)  # type: ignore[no-any-return]


@function(
    samples=[
        sample((3, 4)),
        sample((2, 3, 1), k=2, dims=(0, 2)),
        sample((2, 1, 3), k=-1, dims=(-1, 0)),
        sample((2, 3), k=4),
        sample((0, 3)),
    ]
)
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """The plane of two dims turned by 90 degrees k times, from the first towards the second."""
    if len(dims) != 2 or input.ndim < 2:
        raise OptionError(f"rot90: needs two dims of shape {input.shape}, got {tuple(dims)}")
    a, b = (shape_rules.dim_index(d, input.ndim, "rot90") for d in dims)
    if a == b:
        raise OptionError(f"rot90: dims {tuple(dims)} name one dimension twice")
    match k % 4:
        case 1:
            return transpose(flip(input, b), a, b)
        case 2:
            result: Tensor = flip(input, a, b)
            return result
        case 3:
            return transpose(flip(input, a), a, b)
    return input.clone()


# -- diagonals -----------------------------------------------------------------------------------


def _two_dims(name: str, ndim: int, dim1: int, dim2: int) -> tuple[int, int]:
    if ndim < 2:
        raise ShapeError(f"{name}: needs 2 or more dimensions, got {ndim}")
    a, b = (shape_rules.dim_index(d, ndim, name) for d in (dim1, dim2))
    if a == b:
        raise OptionError(f"{name}: dim1 {dim1} and dim2 {dim2} are the same dimension")
    return a, b


def _diagonal_view(x: Array, offset: int, a: int, b: int) -> Array:
    """The view whose last dimension walks x along dimensions a and b at once."""
    down, right = max(0, -offset), max(0, offset)
    count = max(0, min(x.shape[a] - down, x.shape[b] - right))
    kept = [d for d in range(x.ndim) if d not in (a, b)]
    begin = down * x.strides[a] + right * x.strides[b] if count and x.numel else 0
    shape = (*(x.shape[d] for d in kept), count)
    strides = (*(x.strides[d] for d in kept), x.strides[a] + x.strides[b])
    return x.view(shape, strides, x.offset + begin)


@op(
    shares="view",
    twice="linear",
    samples=[
        sample((3, 4)),
        sample((4, 3), offset=1),
        sample((2, 5, 3), offset=-1, dim1=-2, dim2=-1),
        sample((2, 3, 4), offset=2, dim1=2, dim2=0),
        sample((1, 1)),
        sample((3, 2), offset=7),
        sample((0, 3)),
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
    twice="linear",
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
    whole = full(shape_rules.checked(shape, "diag_embed"), 0, x.dtype)
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
        sample((0, 2)),
    ]
)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A diagonal of a matrix, as a copy; of a vector the matrix with it on that diagonal."""
    if input.ndim not in (1, 2):
        raise ShapeError(f"diag: needs 1 or 2 dimensions, got shape {input.shape}")
    result: Tensor = (
        diag_embed(input, offset=diagonal)
        if input.ndim == 1
        else _DIAGONAL(input, offset=diagonal).clone()
    )
    return result


_DIAGONAL = diagonal  # diag's argument has that name, too

# -- windows -------------------------------------------------------------------------------------


def _windows(length: int, size: int, step: int) -> int:
    """How many windows there are."""
    if not 0 <= size <= length:
        raise RangeError(f"unfold: size {size} does not fit into a dimension of {length}")
    if step < 1:
        raise OptionError(f"unfold: step must be at least 1, got {step}")
    return (length - size) // step + 1


@op(
    shares="repeats",
    twice="linear",
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
    return x.view(shape_rules.checked(shape, "unfold"), strides)


@unfold.gradient
def unfold_gradient(
    grad: Array, *, shapes: tuple[Shape], dimension: int, size: int, step: int
) -> Array:
    """Each element gets the sum over the windows it is in, in their order."""
    d = dimension % len(shapes[0])
    count = grad.shape[d]
    places = (arange(count) * step).reshape(count, 1) + arange(size)
    lines = along(shapes[0], (d,)).lines
    order = [*range(d + 1), grad.ndim - 1, *range(d + 1, grad.ndim - 1)]
    rows = grad.permute(order).contiguous().reshape((lines[0], count * size, lines[2]))
    out = empty(lines, grad.dtype)
    run("index_select_backward", rows, places.reshape(-1).array, out, sizes=(-1,))
    return out.reshape(shapes[0])
