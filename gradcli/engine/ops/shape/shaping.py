"""Tensors in other shapes, repeated or put together, composed of views and joins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from gradcli.engine import shape as shape_rules
from gradcli.engine.argument import listed
from gradcli.engine.composite import function
from gradcli.engine.ops.shape.join import cat
from gradcli.engine.ops.shape.movement import (
    expand,
    getitem,
    own_memory,
    permute,
    reshape,
    transpose,
)
from gradcli.engine.sample import index, sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, RangeError, ShapeError


def _one_of(dim: int, index: int | slice) -> tuple[Any, ...]:
    """The index that takes part of dimension `dim`."""
    return (*[slice(None)] * dim, index)


# -- views ---------------------------------------------------------------------------------------

_MOST_EMPTY = 1 << 16  # parts of tensor_split that hold nothing


@function(
    shares="repeats",
    samples=[
        sample((3, 1), (3, 4)),
        sample((4,), (2, 3, 4)),
        sample((), (2,)),
        sample((1, 3), (0, 3)),
    ],
)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """The input repeated to the shape of another tensor, as a view."""
    result: Tensor = expand(input, other.shape)
    return result


@function(
    shares="repeats",
    samples=[
        sample((3, 1), size=(3, 4)),
        sample((4,), size=(2, 3, 4)),
        sample((), size=(2,)),
        sample((0, 3), size=(2, 0, 3)),
    ],
)
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """The input repeated to a shape, as a view."""
    result: Tensor = expand(input, tuple(size))
    return result


_MOVES = [
    sample((2, 3, 4), source=0, destination=-1),
    sample((2, 1, 3, 4), source=(0, 2), destination=(1, 0)),
    sample((), source=0, destination=0),
    sample((0, 3), source=1, destination=0),
]


@function(shares="view", samples=_MOVES)
def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """A view with the dims `source` at the places `destination`, the others in their order."""
    sources = (source,) if isinstance(source, int) else tuple(source)
    places = (destination,) if isinstance(destination, int) else tuple(destination)
    found = [shape_rules.dim_index(d, input.ndim, "movedim") for d in sources]
    wanted = [shape_rules.dim_index(d, input.ndim, "movedim") for d in places]
    if not len(set(found)) == len(sources) == len(places) == len(set(wanted)):
        raise OptionError(f"movedim: cannot move dims {sources} to {places} one by one")
    if not input.ndim:
        return input
    moved = dict(zip(wanted, found, strict=True))
    rest = iter(d for d in range(input.ndim) if d not in found)
    order = [moved[d] if d in moved else next(rest) for d in range(input.ndim)]
    result: Tensor = permute(input, order)
    return result


function("moveaxis", shares="view", samples=_MOVES)(movedim)


@function(
    shares="view",
    samples=[
        sample((2, 3, 4), axis0=0, axis1=-1),
        sample((3, 1), axis0=-1, axis1=0),
        sample((2, 3), axis0=1, axis1=1),
        sample((0, 3), axis0=0, axis1=1),
    ],
)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """A view with two dimensions exchanged."""
    return transpose(input, axis0, axis1)


@function(
    shares="view",
    samples=[
        sample((2, 3, 4), dim0=0, dim1=-1),
        sample((3, 1), dim0=-1, dim1=0),
        sample((2, 3), dim0=1, dim1=1),
        sample((0, 3), dim0=0, dim1=1),
    ],
)
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two dimensions exchanged."""
    return transpose(input, dim0, dim1)


@function(
    shares="view",
    samples=[
        sample((2, 6), dim=1, sizes=(2, 3)),
        sample((12, 1), dim=0, sizes=(3, -1, 2)),
        sample((3, 4, 2), dim=-2, sizes=(1, 4)),
        sample((0, 3), dim=0, sizes=(2, 0)),
    ],
)
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """One dimension cut into several of these sizes, of which one may be -1."""
    if not input.ndim:
        raise ShapeError("unflatten: a tensor without dimensions has none to cut")
    d = shape_rules.dim_index(dim, input.ndim, "unflatten")
    inside = shape_rules.infer(tuple(sizes), input.shape[d], "unflatten")
    result: Tensor = reshape(input, (*input.shape[:d], *inside, *input.shape[d + 1 :]))
    return result


@function(shares="either", samples=[sample((3, 5)), sample((2, 1, 4)), sample(()), sample((0, 3))])
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension."""
    flat: Tensor = reshape(input, -1) if input.numel() else reshape(input, 0)
    return flat if input.is_contiguous() else own_memory(flat, input)


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
    result: Tensor = getitem(input, index=_one_of(d, slice(begin, begin + length)))
    return result


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
    result: Tensor = getitem(input, index=_one_of(d, index))
    return result


@function(
    shares="view",
    samples=[
        sample((7, 2), indices_or_sections=3),
        sample((2, 5), indices_or_sections=(1, 4), dim=-1),
        sample((6, 1), index((2,), 6)),
        sample((2, 3), indices_or_sections=5, dim=1),
        sample((0, 3), indices_or_sections=2),
    ],
    wrong=[wrong(sample((), indices_or_sections=1), "tensor_split: a tensor without dimensions")],
)
def tensor_split(
    input: Tensor, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0
) -> tuple[Tensor, ...]:
    """Views along `dim`: this many, the first ones longer by one; or cut before these indices."""
    if not input.ndim:
        raise ShapeError("tensor_split: a tensor without dimensions has no parts")
    d = shape_rules.dim_index(dim, input.ndim, "tensor_split")
    cuts: Any = indices_or_sections
    if isinstance(cuts, Tensor):
        if cuts.dtype.kind != "int" or cuts.ndim > 1:
            raise DTypeError(f"tensor_split: cannot be cut at {cuts.dtype} {cuts.shape}")
        cuts = cuts.tolist()
    if isinstance(cuts, int):
        most = input.shape[d] + _MOST_EMPTY
        if not 1 <= cuts <= most:
            raise OptionError(
                f"tensor_split: indices_or_sections must be from 1 to {most} here, got {cuts}"
            )
        short, longer = divmod(input.shape[d], cuts)
        cuts = [i * short + min(i, longer) for i in range(1, cuts)]
    bounds = zip([None, *cuts], [*cuts, None], strict=True)
    return tuple(getitem(input, index=_one_of(d, slice(a, b))) for a, b in bounds)


@function(
    shares="repeats",
    samples=[
        sample((3,), (4,)),
        sample((2,), (3,), (1,), indexing="xy"),
        sample((), (3,)),
        sample((5,), indexing="xy"),
        sample((0,), (2,)),
    ],
    method=False,
)
def meshgrid(
    *tensors: Tensor | Sequence[Tensor], indexing: Literal["ij", "xy"] = "ij"
) -> tuple[Tensor, ...]:
    """Each vector expanded over all others' dimensions, as views; 'xy' exchanges the first two."""
    given = [reshape(t, -1) if t.ndim == 0 else t for t in listed("meshgrid", "tensors", tensors)]
    if not given or any(t.ndim != 1 for t in given):
        raise ShapeError(f"meshgrid: needs vectors, got shapes {[t.shape for t in given]}")
    swapped = indexing == "xy" and len(given) > 1
    if swapped:
        given[:2] = given[1::-1]
    sizes = [t.numel() for t in given]
    grids = []
    for d, t in enumerate(given):
        shape = [size if d == k else 1 for k, size in enumerate(sizes)]
        grids.append(expand(reshape(t, shape), sizes))
    if swapped:
        grids[:2] = grids[1::-1]
    return tuple(grids)


# -- put together --------------------------------------------------------------------------------


def _at_least(ndim: int, x: Tensor) -> Tensor:
    """Size-1 dimensions as in NumPy: in front for 2, around the others for 3."""
    shape = x.shape
    if len(shape) < 2:
        shape = (*(1,) * (min(ndim, 2) - len(shape)), *shape)
    if len(shape) < ndim:
        shape = (*shape, 1)
    result: Tensor = x if shape == x.shape else reshape(x, shape)
    return result


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
        sample((0, 3), (2, 3)),
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
