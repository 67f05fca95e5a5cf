"""Ops that move or show elements in another order: views where possible, no arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shape_rules
from gradcli.engine.array import Array, copy_into, full, unbroadcast
from gradcli.engine.composite import function
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Sizes, shown
from gradcli.engine.op import op
from gradcli.engine.sample import sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, RangeError, ShapeError


@op(
    shares="either",
    twice="linear",
    variadic=True,
    samples=[
        sample((3, 4), shape=(2, -1)),
        sample((2, 3, 4), shape=(4, 6)),
        sample((), shape=(1, 1)),
        sample((4, 1), shape=(2, 2)),
        sample((0, 3), shape=(3, 0)),
    ],
    wrong=[wrong(sample((3, 4), shape=(5, -1)), "reshape: shape (5, -1) does not hold 12")],
)
def reshape(x: Array, *, shape: Shape) -> Array:
    """The same elements in another shape, as a view where possible; one size may be -1."""
    return x.reshape(shape_rules.infer(shape, x.numel, "reshape"))


@reshape.gradient
def reshape_gradient(grad: Array, *, shapes: tuple[Shape]) -> Array:
    """Back into the old shape."""
    return grad.reshape(shapes[0])


@op(
    shares="view",
    twice="linear",
    variadic=True,
    samples=[
        sample((2, 3, 4), dims=(2, 0, 1)),
        sample((3, 1), dims=(-1, 0)),
        sample((0, 3), dims=(1, 0)),
    ],
    wrong=[wrong(sample((2, 3), dims=(0, 0)), "permute: dims (0, 0) do not name")],
)
def permute(x: Array, *, dims: Sequence[int]) -> Array:
    """A view with the dimensions in another order."""
    order = [shape_rules.dim_index(d, x.ndim, "permute") for d in dims]
    if sorted(order) != list(range(x.ndim)):
        raise OptionError(f"permute: dims {tuple(dims)} do not name each of {x.ndim} once")
    return x.permute(order)


@permute.gradient
def permute_gradient(grad: Array, *, dims: Sequence[int]) -> Array:
    """The inverse order."""
    order = [d % grad.ndim for d in dims]
    return grad.permute([order.index(d) for d in range(grad.ndim)])


@op(
    shares="repeats",
    twice="linear",
    variadic=True,
    samples=[
        sample((3, 1), size=(3, 4)),
        sample((4,), size=(2, -1)),
        sample((), size=(2, 3)),
        sample((0, 1), size=(0, 3)),
    ],
    wrong=[wrong(sample((3, 2), size=(3, 4)), "expand: cannot expand shape (3, 2) to (3, 4)")],
)
def expand(x: Array, *, size: Shape) -> Array:
    """A view that repeats size-1 and missing dimensions; -1 keeps a size."""
    extra = len(size) - x.ndim
    if extra < 0:
        raise ShapeError(f"expand: {size} has fewer dimensions than shape {x.shape}")
    wanted = [x.shape[d - extra] if s == -1 and d >= extra else s for d, s in enumerate(size)]
    return x.expand(shape_rules.checked(wanted, "expand"))


@expand.gradient
def expand_gradient(grad: Array, *, shapes: tuple[Shape]) -> Array:
    """Summed over what was repeated."""
    return unbroadcast(grad, shapes[0])


@op(
    shares="view",
    twice="linear",
    method=False,
    samples=[
        sample((5, 6), index=(slice(1, None, 2), slice(None, 3))),
        sample((4, 5), index=2),
        sample((3, 4), index=(None, slice(2, None), Ellipsis)),
        sample((2, 3, 4), index=(Ellipsis, -1)),
        sample((4,), index=slice(4, 4)),
        sample((0, 1), index=(slice(None), 0)),
    ],
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
def getitem_gradient(grad: Array, *, shapes: tuple[Shape], index: Any) -> Array:
    """Zeros, with the gradient where the view lies."""
    whole = full(shapes[0], 0, grad.dtype)
    copy_into(basic_view(whole, index), grad)
    return whole


@op(
    twice="linear",
    method=False,
    samples=[sample(shape, dtype=dtypes.float64) for shape in ((3, 5), (4, 1), (), (0, 2))],
)
def cast(x: Array, *, dtype: DType) -> Array:
    """The same numbers as another element type."""
    return x.cast(dtype)


@cast.gradient
def cast_gradient(grad: Array, *, dtypes: tuple[DType]) -> Array:
    """Back to the old type; none where it was no float."""
    return grad.cast(dtypes[0])


@op(twice="linear", samples=[sample(shape) for shape in ((3, 5), (4, 1), (), (0, 2))])
def clone(x: Array) -> Array:
    """The same elements in memory of their own; gradients pass through."""
    return x.copy()


@clone.gradient
def clone_gradient(grad: Array) -> Array:
    """Unchanged."""
    return grad


def basic_view(x: Array, index: Any, name: str = "getitem") -> Array:
    """The view that whole numbers, slices, None and Ellipsis describe."""
    parts = index if isinstance(index, tuple) else (index,)
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if used > x.ndim:
        raise RangeError(f"{name}: {used} indices for {x.ndim} dimension(s) of shape {x.shape}")
    shape: list[int] = []
    strides: list[int] = []
    offset, d = x.offset, 0
    for part in _spelled_out(name, parts, x.ndim - used):
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
    return x.view(shape_rules.checked(shape, name), tuple(strides), offset)


def _spelled_out(name: str, parts: tuple[Any, ...], missing: int) -> list[Any]:
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
            f"{name}: index {shown(i)} is outside {-size}..{size - 1} of dimension {d}"
        )
    return i % size


# -- functions in torch's form, composed of the ops above ----------------------------------------


def own_memory(result: Tensor, input: Tensor) -> Tensor:
    """The result; a copy where it is only a view of the input, which it must not be."""
    shared = result.array.storage is input.array.storage
    own: Tensor = clone(result) if shared else result
    return own


@function(
    shares="view",
    samples=[
        sample((3, 5), dim0=0, dim1=1),
        sample((2, 1, 4), dim0=-1, dim1=0),
        sample((2, 3), dim0=1, dim1=1),
        sample((), dim0=0, dim1=-1),
        sample((2, 0, 3), dim0=1, dim1=2),
    ],
    wrong=[wrong(sample((2, 3), dim0=0, dim1=2), "dim 2 is outside -2..1")],
)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two dimensions exchanged."""
    order = list(range(input.ndim))
    a = shape_rules.dim_index(dim0, input.ndim, "transpose")
    b = shape_rules.dim_index(dim1, input.ndim, "transpose")
    if order:
        order[a], order[b] = order[b], order[a]
    result: Tensor = permute(input, dims=order)
    return result


@function(
    shares="view",
    samples=[sample((3, 5)), sample((4, 1)), sample((4,)), sample(()), sample((0, 3))],
    wrong=[wrong(sample((2, 3, 4)), "at most 2 dimensions")],
)
def t(input: Tensor) -> Tensor:
    """A matrix transposed; vectors and numbers as they are."""
    if input.ndim > 2:
        raise ShapeError(f"t: at most 2 dimensions, got shape {input.shape}; use transpose")
    return transpose(input, 0, 1) if input.ndim == 2 else input


@function(
    shares="view",
    samples=[
        sample((6,), shape=(2, 3)),
        sample((2, 6), shape=(2, 1, -1, 3)),
        sample((), shape=(1, 1)),
        sample((2, 1, 3), shape=((2, 3),)),
        sample((0, 3), shape=(3, 0)),
    ],
)
def view(input: Tensor, *shape: Sizes) -> Tensor:
    """The same memory in another shape; an error where that needs a copy."""
    result: Tensor = reshape(input, *shape)
    if input.numel() and result.array.storage is not input.array.storage:
        raise ShapeError(
            f"view: shape {input.shape} with strides {input.stride()} has no such view; use reshape"
        )
    return result


@function(shares="either", samples=[sample(shape) for shape in ((3, 5), (2, 1, 4), (), (0, 3))])
def contiguous(input: Tensor) -> Tensor:
    """The tensor itself when its elements lie in order, otherwise a copy where they do."""
    result: Tensor = input if input.is_contiguous() else clone(input)
    return result


@function(
    shares="either",
    samples=[
        sample((2, 3, 4)),
        sample((2, 3, 1, 4), start_dim=1, end_dim=-2),
        sample((3, 5), start_dim=1),
        sample(()),
        sample((2, 0, 3), start_dim=1),
    ],
    wrong=[wrong(sample((2, 3), start_dim=1, end_dim=0), "start_dim 1 comes after end_dim 0")],
)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions start_dim to end_dim merged into one."""
    first = shape_rules.dim_index(start_dim, input.ndim, "flatten")
    last = shape_rules.dim_index(end_dim, input.ndim, "flatten")
    if first > last:
        raise OptionError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}")
    merged = shape_rules.numel(input.shape[first : last + 1])
    result: Tensor = reshape(input, (*input.shape[:first], merged, *input.shape[last + 1 :]))
    return result


@function(
    shares="view",
    samples=[
        sample((3, 1, 5)),
        sample((1, 3, 1), dim=0),
        sample((1, 2, 1, 3, 1), dim=(0, -1)),
        sample((3, 5), dim=1),
        sample((0, 1)),
    ],
    wrong=[wrong(sample((2, 1), dim=2), "dim 2 is outside -2..1")],
)
def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Without its dimensions of size 1, or without those named."""
    dims = shape_rules.dim_set(dim, input.ndim, "squeeze")
    kept = [s for d, s in enumerate(input.shape) if s != 1 or d not in dims]
    result: Tensor = reshape(input, kept)
    return result


@function(
    shares="view",
    samples=[
        sample((3, 5), dim=1),
        sample((2, 1), dim=-1),
        sample((), dim=0),
        sample((0, 3), dim=2),
    ],
    wrong=[wrong(sample((2, 3), dim=3), "dim 3 is outside -3..2")],
)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With one more dimension, of size 1, at `dim`."""
    at = shape_rules.dim_index(dim, input.ndim + 1, "unsqueeze")
    result: Tensor = reshape(input, (*input.shape[:at], 1, *input.shape[at:]))
    return result
