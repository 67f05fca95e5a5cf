"""Elements in another order: flip, roll, rot90."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.engine import shape as shape_rules
from gradcli.engine.array import Array, empty, run
from gradcli.engine.composite import function
from gradcli.engine.op import op
from gradcli.engine.ops.shape.permute import transpose
from gradcli.engine.sample import sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError
from gradcli.wording import quantity


@op(
    double_backward="linear",
    variadic=True,
    samples=[
        sample((3, 4), dims=(0,)),
        sample((2, 3, 4), dims=(0, -1)),
        sample((1, 5), dims=(1,)),
        sample((3,), dims=()),
        sample((0, 3), dims=(0, 1)),
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
    return flip(input, 1)


@function(samples=[sample((3, 4)), sample((5,)), sample((2, 1, 3)), sample((3, 0))])
def flipud(input: Tensor) -> Tensor:
    """Rows in reverse order."""
    if input.ndim < 1:
        raise ShapeError("flipud: needs 1 or more dimensions, got shape ()")
    return flip(input, 0)


def _shifts(
    x: Shape, shifts: int | Sequence[int], dims: int | Sequence[int]
) -> list[tuple[int, int]]:
    """(dimension, shift) one by one."""
    by = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    along_dims = (dims,) if isinstance(dims, int) else tuple(dims)
    if len(by) != len(along_dims):
        raise OptionError(
            f"roll: {quantity(len(by), 'shift')} for {quantity(len(along_dims), 'dim')}"
        )
    dims_of_shifts = [shape_rules.dim_index(d, len(x), "roll") for d in along_dims]
    return [(d, s) for d, s in zip(dims_of_shifts, by, strict=True) if x]


def _rolled(x: Array, d: int, shift: int) -> Array:
    """Each element `shift` elements further along d, from the end to the front."""
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
    double_backward="linear",
    samples=[
        sample((3, 4), shifts=1, dims=0),
        sample((2, 3, 4), shifts=(-1, 6), dims=(1, -1)),
        sample((2, 5), shifts=3),
        sample((3, 4), shifts=(1, 1), dims=(0, 0)),
        sample((1, 3), shifts=2, dims=0),
    ],
    wrong=[
        wrong(sample((2, 3), shifts=(1, 2), dims=0), "roll: 2 shifts for 1 dim"),
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
    ]
)
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """The plane of two dims rotated by 90 degrees k times, from the first towards the second."""
    if len(dims) != 2 or input.ndim < 2:
        raise OptionError(f"rot90: needs two dims of shape {input.shape}, got {tuple(dims)}")
    a, b = (shape_rules.dim_index(d, input.ndim, "rot90") for d in dims)
    if a == b:
        raise OptionError(f"rot90: dims {tuple(dims)} name one dimension twice")
    match k % 4:
        case 1:
            return transpose(flip(input, b), a, b)
        case 2:
            return flip(input, a, b)
        case 3:
            return transpose(flip(input, a), a, b)
    return input.clone()


def _two_dims(name: str, ndim: int, dim1: int, dim2: int) -> tuple[int, int]:
    if ndim < 2:
        raise ShapeError(f"{name}: needs 2 or more dimensions, got {ndim}")
    a, b = shape_rules.dim_index(dim1, ndim, name), shape_rules.dim_index(dim2, ndim, name)
    if a == b:
        raise OptionError(f"{name}: dim1 {dim1} and dim2 {dim2} are the same dimension")
    return a, b
