"""Basic indexing, by whole numbers and slices: views."""

from __future__ import annotations

from typing import Any

from gradcli.engine import shape as shape_rules
from gradcli.engine.array import Array, copy_into, full
from gradcli.engine.composite import function
from gradcli.engine.kind import format_value
from gradcli.engine.op import op
from gradcli.engine.sample import sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, RangeError, ShapeError
from gradcli.wording import quantity

# Shapes, an index into each, and the shape of the part.
PARTS: list[tuple[Shape, Any, Shape]] = [
    ((5, 6), (slice(1, None, 2), slice(None, 3)), (2, 3)),
    ((4, 5), 2, (5,)),
    ((3, 4), (None, slice(2, None), Ellipsis), (1, 1, 4)),
    ((2, 3, 4), (Ellipsis, -1), (2, 3)),
    ((4,), slice(4, 4), (0,)),
    ((0, 1), (slice(None), 0), (0,)),
]


@op(
    shares="view",
    double_backward="linear",
    method=False,
    samples=[sample(shape, index=index) for shape, index, _ in PARTS],
    wrong=[
        wrong(sample((3, 4), index=3), "index 3 is outside -3..2"),
        wrong(sample((3,), index=(0, 0)), "2 indices for 1 dimension"),
        wrong(sample((3,), index="x"), "cannot index with str"),
    ],
)
def getitem(x: Array, *, index: Any) -> Array:
    """A view of part of x: whole numbers, slices, None and Ellipsis, as in torch."""
    return basic_view(x, index)


@getitem.gradient
def getitem_gradient(grad: Array, *, shapes: tuple[Shape], index: object) -> Array:
    """Zeros, with the gradient where the view lies."""
    whole = full(shapes[0], 0, grad.dtype)
    copy_into(basic_view(whole, index), grad)
    return whole


def basic_view(x: Array, index: object, name: str = "getitem") -> Array:
    """The view that whole numbers, slices, None and Ellipsis describe."""
    parts = index if isinstance(index, tuple) else (index,)
    index_count = sum(part is not None and part is not Ellipsis for part in parts)
    if index_count > x.ndim:
        raise RangeError(
            f"{name}: {quantity(index_count, 'index', 'indices')} for {x.ndim} dimension(s) "
            f"of shape {x.shape}"
        )
    shape: list[int] = []
    strides: list[int] = []
    offset, d = x.offset, 0
    for part in _spelled_out(name, parts, x.ndim - index_count):
        if part is None:
            shape.append(1)
            strides.append(0)
            continue
        size, stride = x.shape[d], x.strides[d]
        if isinstance(part, slice):
            start, stop, step = _slice(name, part, size)
            count = max(0, -(-(stop - start) // step))
            shape.append(count)
            strides.append(stride * step)
            offset += start * stride if count else 0
        else:
            offset += _position(name, part, size, d) * stride
        d += 1
    return x.view(shape_rules.check_shape(shape, name), tuple(strides), offset)


def _spelled_out(name: str, parts: tuple[object, ...], missing: int) -> list[Any]:
    """Ellipsis, or the end, replaced by the full slices it stands for."""
    if sum(part is Ellipsis for part in parts) > 1:
        raise OptionError(f"{name}: only one Ellipsis is possible")
    at = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    return [*parts[:at], *[slice(None)] * missing, *parts[at + 1 :]]


def _slice(name: str, part: slice, size: int) -> tuple[int, int, int]:
    step = 1 if part.step is None else part.step
    if step <= 0:
        raise OptionError(f"{name}: a slice's step must be positive, got {step}")
    try:
        return part.indices(size)
    except TypeError as error:
        raise DTypeError(f"{name}: {error}") from None


def _position(name: str, part: Any, size: int, d: int) -> int:
    if isinstance(part, bool) or not hasattr(type(part), "__index__"):
        raise DTypeError(f"{name}: cannot index with {type(part).__name__}")
    i = int(part.__index__())
    if not -size <= i < size:
        raise RangeError(
            f"{name}: index {format_value(i)} is outside {-size}..{size - 1} of dimension {d}"
        )
    return i % size


def part_along(x: Tensor, dim: int, part: int | slice) -> Tensor:
    """A view of one slice along `dim`, or of several."""
    return getitem(x, index=(*(slice(None),) * dim, part))


@function(
    shares="view",
    samples=[
        sample((5, 3), dim=0, start=1, length=3),
        sample((2, 4, 3), dim=-2, start=-3, length=2),
        sample((3, 1), dim=0, start=3, length=0),
        sample((0, 3), dim=1, start=0, length=2),
    ],
    wrong=[wrong(sample((), dim=0, start=0, length=1), "narrow: a tensor without dimensions")],
)
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A view of `length` slices along `dim` from `start` on."""
    if not input.ndim:
        raise ShapeError("narrow: a tensor without dimensions has no slices")
    d = shape_rules.dim_index(dim, input.ndim, "narrow")
    size, begin = input.shape[d], int(start)
    begin += size if begin < 0 else 0
    if length < 0 or not 0 <= begin <= size - length:
        raise RangeError(f"narrow: start {start} and length {length} leave a dimension of {size}")
    return part_along(input, d, slice(begin, begin + length))


@function(
    shares="view",
    samples=[
        sample((3, 4), dim=0, index=1),
        sample((2, 3, 4), dim=-2, index=-1),
        sample((5, 1), dim=1, index=0),
        sample((0, 3), dim=1, index=2),
    ],
)
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """A view of one slice along `dim`, without that dimension."""
    if not input.ndim:
        raise ShapeError("select: a tensor without dimensions has no slices")
    d = shape_rules.dim_index(dim, input.ndim, "select")
    return part_along(input, d, index)
