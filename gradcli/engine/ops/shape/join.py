"""Tensors put side by side: cat, stack and their kin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine import shape as shape_rules
from gradcli.engine.argument import unpack_list
from gradcli.engine.array import Array, empty, run
from gradcli.engine.composite import FUNCTIONS, function
from gradcli.engine.op import op
from gradcli.engine.ops.elementwise.family import matched
from gradcli.engine.ops.shape.reshape import clone, reshape, unsqueeze
from gradcli.engine.sample import sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, ShapeError

Ranked = Tensor | tuple[Tensor, ...]  # one for one tensor, several for several


def _part(whole: Array, dim: int, start: int, size: int) -> Array:
    """A view of `size` slices along `dim`."""
    shape = (*whole.shape[:dim], size, *whole.shape[dim + 1 :])
    return whole.view(
        shape, whole.strides, whole.offset + (start * whole.strides[dim] if size else 0)
    )


def _joined_dim(name: str, a: Shape, b: Shape, dim: int) -> int:
    """`dim` from the front; refuses shapes that differ elsewhere."""
    if not a:
        raise ShapeError(f"{name}: a tensor without dimensions cannot be joined; use stack")
    d = shape_rules.dim_index(dim, len(a), name)
    if len(a) != len(b) or (*a[:d], *a[d + 1 :]) != (*b[:d], *b[d + 1 :]):
        raise ShapeError(f"{name}: shapes {a} and {b} differ outside dim {d}")
    return d


@op(
    double_backward="linear",
    method=False,
    samples=[
        sample((2, 3), (4, 3), dim=0),
        sample((2, 3, 4), (2, 1, 4), dim=1),
        sample((2, 1), (2, 5), dim=-1),
        sample((0, 3), (2, 3), dim=0),
        sample((2, 3), (2, 0), dim=1),
    ],
    wrong=[
        wrong(sample((2, 3), (2, 4), dim=0), "shapes (2, 3) and (2, 4) differ outside dim 0"),
        wrong(sample((2,), (2, 1), dim=0), "shapes (2,) and (2, 1) differ outside dim 0"),
        wrong(sample((), (), dim=0), "a tensor without dimensions"),
    ],
)
def join(input: Array, other: Array, *, dim: int) -> Array:
    """Two tensors behind one another along `dim`; `cat` is made of these."""
    d = _joined_dim("join", input.shape, other.shape, dim)
    if input.dtype is not other.dtype:
        raise DTypeError(f"join: both must be of one type, got {input.dtype} and {other.dtype}")
    first, second = input.shape[d], other.shape[d]
    out = empty((*input.shape[:d], first + second, *input.shape[d + 1 :]), input.dtype)
    run("copy", input, _part(out, d, 0, first))
    run("copy", other, _part(out, d, first, second))
    return out


@join.gradient
def join_gradient(grad: Array, *, shapes: tuple[Shape, Shape], dim: int) -> tuple[Array, Array]:
    """Each its own part."""
    d = dim % grad.ndim
    first, second = shapes[0][d], shapes[1][d]
    return _part(grad, d, 0, first), _part(grad, d, first, second)


@function(
    samples=[
        sample((2, 3), (4, 3)),
        sample((2, 1, 3), (2, 4, 3), (2, 0, 3), dim=1),
        sample((3, 2), dim=-1),
        sample((2,), (1,), (3,), (4,), (2,)),
    ],
    wrong=[wrong(sample(), "needs at least one tensor")],
    method=False,
)
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors behind one another along `dim`; their other sizes must be equal."""
    parts = list(tensors)
    if not parts:
        raise OptionError("cat: needs at least one tensor")
    for other in parts[1:] if len(parts) > 2 else ():  # join looks at two by itself
        _joined_dim("cat", parts[0].shape, other.shape, dim)
    if len(parts) == 1:
        shape_rules.dim_index(dim, parts[0].ndim, "cat")
        parts = [clone(parts[0])]
    while len(parts) > 1:  # pairs of pairs: each element is copied log2(n) times, not n times
        pairs = zip(parts[::2], parts[1::2], strict=False)
        odd = parts[-1:] if len(parts) % 2 else []
        parts = [_join(a, b, dim) for a, b in pairs] + odd
    return parts[0]


def _join(a: Tensor, b: Tensor, dim: int) -> Tensor:
    """Two of any types; in most calls they have the same."""
    return join.ran([a, b] if a.dtype is b.dtype else [*matched("cat", a, b)], {"dim": dim})


@function(
    samples=[
        sample((2, 3), (2, 3)),
        sample((4, 1, 2), (4, 1, 2), (4, 1, 2), dim=1),
        sample((), (), dim=-1),
        sample((0, 3), dim=2),
    ],
    method=False,
)
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape, side by side along a new dimension."""
    shapes = {t.shape for t in tensors}
    if len(shapes) > 1:
        raise ShapeError(f"stack: needs tensors of one shape, got {sorted(shapes)}")
    shape = tensors[0].shape if shapes else ()
    d = shape_rules.dim_index(dim, len(shape) + 1, "stack")
    if d == len(shape):
        return cat([unsqueeze(t, d) for t in tensors], d)
    # The same elements in the same order as behind one another.
    return reshape(cat(tensors, d), (*shape[:d], len(tensors), *shape[d:]))


def _at_least(ndim: int, x: Tensor) -> Tensor:
    """Size-1 dimensions as in NumPy: in front for 2, around the others for 3."""
    shape = x.shape
    if len(shape) < 2:
        shape = (*(1,) * (min(ndim, 2) - len(shape)), *shape)
    if len(shape) < ndim:
        shape = (*shape, 1)
    return x if shape == x.shape else reshape(x, shape)


_RANKS = [
    sample(()),
    sample((3,), ()),
    sample((2, 3), (4,), ()),
    sample((2, 1, 3)),
    sample((1, 2, 3, 1)),
    sample((0, 3)),
]


def _each_at_least(name: str, ndim: int, tensors: tuple[Any, ...]) -> Ranked:
    """One tensor for one, several for several or for a list."""
    results = tuple(_at_least(ndim, t) for t in unpack_list(name, "tensors", tensors))
    return results[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else results


@function(shares="view", samples=_RANKS, method=False)
def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Ranked:
    """As they are, a number as a vector."""
    return _each_at_least("atleast_1d", 1, tensors)


@function(shares="view", samples=_RANKS, method=False)
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Ranked:
    """As they are, a number or a vector as a row."""
    return _each_at_least("atleast_2d", 2, tensors)


@function(shares="view", samples=_RANKS, method=False)
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Ranked:
    """As they are, a vector as (1, n, 1), a matrix as (n, m, 1)."""
    return _each_at_least("atleast_3d", 3, tensors)


@function(
    samples=[
        sample((2, 3), (2, 1)),
        sample((3,), (4,), (1,)),
        sample((), ()),
        sample((2, 0, 3), (2, 4, 3)),
    ],
    method=False,
)
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors side by side: along the columns, for vectors along their only dimension."""
    parts = [_at_least(1, t) for t in tensors]
    return cat(parts, 0 if parts and parts[0].ndim == 1 else 1)


@function(
    samples=[
        sample((2, 3), (1, 3)),
        sample((3,), (2, 3), (3,)),
        sample((), ()),
    ],
    method=False,
)
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors below one another; a vector is a row."""
    return cat([_at_least(2, t) for t in tensors], 0)


@function(
    samples=[
        sample((2, 3), (2, 3)),
        sample((3,), (1, 3, 2)),
        sample((), ()),
        sample((2, 3, 0), (2, 3)),
    ],
    method=False,
)
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors behind one another along the third dimension."""
    return cat([_at_least(3, t) for t in tensors], 2)


function("concat", method=False, samples=FUNCTIONS["cat"].samples)(cat)


@function(
    method=False,
    samples=[
        sample((3, 2), (3, 1)),
        sample((3,), (3, 2), (3,)),
        sample((), ()),
        sample((2, 3, 4), (2, 1, 4)),
        sample((0,), (0, 2)),
    ],
)
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors side by side; a vector is a column."""
    return cat([reshape(x, (x.numel(), 1)) if x.ndim < 2 else x for x in tensors], 1)
