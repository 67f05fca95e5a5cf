"""Shapes and strides: tuples in, tuples out; no data is touched here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, TypeVar, cast

from gradcli.errors import OptionError, RangeError, ShapeError
from gradcli.wording import quantity

Shape = tuple[int, ...]
MAX_DIMS = 8

Function = TypeVar("Function", bound=Callable[..., Any])


def remembered(function: Function) -> Function:
    """Look answers up that were given before: a model asks for few shapes, but in every step."""
    return cast(Function, lru_cache(maxsize=4096)(function))


def numel(shape: Shape) -> int:
    """How many elements a tensor of this shape has."""
    return prod(shape)


@remembered
def contiguous_strides(shape: Shape) -> Shape:
    """Row-major strides, in elements."""
    strides, step = [0] * len(shape), 1
    for d in range(len(shape) - 1, -1, -1):
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


@remembered
def is_contiguous(shape: Shape, strides: Shape) -> bool:
    """True when the elements lie one behind the other in row-major order."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def check_shape(shape: Sequence[int], op: str) -> Shape:
    """The shape as a tuple; refuses negative sizes and more than eight dimensions."""
    if not isinstance(shape, (tuple, list)):
        raise OptionError(f"{op}: size must be a tuple of whole numbers, got {shape!r:.60}")
    for size in shape:
        if type(size) is not int and (isinstance(size, bool) or not isinstance(size, int)):
            raise OptionError(f"{op}: size must be made of whole numbers, got {size!r:.60}")
        if not 0 <= size < 0x8000000000000000:
            what = "negative" if size < 0 else "beyond 64 bits"
            raise ShapeError(f"{op}: a size cannot be {what}, got shape {tuple(shape)!r:.100}")
    if len(shape) > MAX_DIMS:
        raise ShapeError(f"{op}: at most {MAX_DIMS} dimensions, got {len(shape)}")
    return tuple(shape)


@remembered
def neighbours(dims: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Ascending dims in runs of neighbours: (0, 2, 3) is (0,) and (2, 3)."""
    runs: list[tuple[int, ...]] = []
    for d in dims:
        if runs and runs[-1][-1] == d - 1:
            runs[-1] = (*runs[-1], d)
        else:
            runs.append((d,))
    return tuple(runs)


@remembered
def broadcast(a: Shape, b: Shape, op: str) -> Shape:
    """The common shape of two: sizes match from the right, or one of them is 1."""
    if a == b:
        return a
    n = max(len(a), len(b))
    left, right = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
    for x, y in zip(left, right, strict=True):
        if x != y and x != 1 and y != 1:
            raise ShapeError(f"{op}: shapes {a} and {b} do not broadcast: {x} against {y}")
    return tuple(y if x == 1 else x for x, y in zip(left, right, strict=True))


@remembered
def expand_strides(shape: Shape, strides: Shape, to: Shape, op: str) -> Shape:
    """Strides that repeat a tensor of `shape` to the shape `to`: 0 where it repeats."""
    extra = len(to) - len(shape)
    if extra < 0:
        raise ShapeError(f"{op}: cannot expand shape {shape} to {to}: fewer dimensions")
    result = [0] * extra
    for have, stride, want in zip(shape, strides, to[extra:], strict=True):
        if have != want and have != 1:
            raise ShapeError(f"{op}: cannot expand shape {shape} to {to}: {have} against {want}")
        result.append(stride if have == want else 0)
    return tuple(result)


@remembered
def repeated_dims(to: Shape, shape: Shape) -> tuple[int, ...]:
    """The dimensions of `to` along which a shape was repeated by broadcasting."""
    extra = len(to) - len(shape)
    stretched = [d + extra for d, size in enumerate(shape) if size == 1 and to[d + extra] != 1]
    return (*range(extra), *stretched)


def dim_index(dim: int, ndim: int, op: str) -> int:
    """`dim` counted from the front; negative ones count from the back, as in torch."""
    if type(dim) is not int and (isinstance(dim, bool) or not isinstance(dim, int)):
        raise OptionError(f"{op}: dim must be a whole number, got {dim!r}")
    limit = max(ndim, 1)
    if not -limit <= dim < limit:
        text = dim if abs(dim) < 1 << 63 else "beyond 64 bits"
        raise RangeError(f"{op}: dim {text} is outside {-limit}..{limit - 1}")
    return dim % limit


def dim_set(dim: int | Sequence[int] | None, ndim: int, op: str) -> tuple[int, ...]:
    """The dimensions a reduction removes, ascending; None and () mean all of them."""
    if dim is None:
        return tuple(range(ndim))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if not dims:
        return tuple(range(ndim))
    indices = sorted(dim_index(d, ndim, op) for d in dims)
    if len(set(indices)) != len(indices):
        raise OptionError(f"{op}: dim {dims} names one dimension twice")
    return tuple(d for d in indices if d < ndim)


@remembered
def reduced(shape: Shape, dims: tuple[int, ...], keepdim: bool) -> Shape:
    """What is left of a shape when `dims` are reduced."""
    if keepdim:
        return tuple(1 if d in dims else size for d, size in enumerate(shape))
    return tuple(size for d, size in enumerate(shape) if d not in dims)


def infer(shape: Sequence[int], count: int, op: str) -> Shape:
    """Replaces one -1 by what makes the shape hold `count` elements."""
    unknown = [d for d, size in enumerate(shape) if size == -1]
    if len(unknown) > 1:
        raise ShapeError(f"{op}: only one size can be -1, got shape {tuple(shape)}")
    product = prod(size for size in shape if size != -1)
    fits = product == count if not unknown else product != 0 and count % product == 0
    if not fits:
        raise ShapeError(f"{op}: shape {tuple(shape)} does not hold {quantity(count, 'element')}")
    return check_shape([count // product if size == -1 else size for size in shape], op)


@remembered
def view_strides(shape: Shape, strides: Shape, to: Shape) -> Shape | None:
    """Strides of the same elements under another shape, or None when they must be copied.

    Runs of dimensions that lie one behind the other in memory can be cut anew; `to` is walked in
    step with such runs.
    """
    if numel(shape) != numel(to):
        raise ShapeError(f"reshape: shape {shape} does not fit into {to}")
    if numel(shape) == 0:
        return contiguous_strides(to)
    result = [1] * len(to)
    d = len(to) - 1
    for count, stride in reversed(_runs(shape, strides)):
        step, rest = stride, count
        while rest > 1:
            while to[d] == 1:
                d -= 1
            if rest % to[d]:
                return None
            result[d] = step
            step *= to[d]
            rest //= to[d]
            d -= 1
    return tuple(result)


def _runs(shape: Shape, strides: Shape) -> list[tuple[int, int]]:
    """Dimensions that lie one behind the other: (elements, stride of the last), outer first."""
    runs: list[tuple[int, int]] = []
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * stride:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    return runs


def extent(offset: int, shape: Shape, strides: Shape) -> tuple[int, int]:
    """From the first to the last element in memory, half open; (0, 0) for none."""
    if 0 in shape:
        return 0, 0
    spans = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    low = offset + sum(span for span in spans if span < 0)
    high = offset + sum(span for span in spans if span > 0)
    return low, high + 1
