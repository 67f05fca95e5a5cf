"""Dimensions of size 1 repeated without a copy: views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from gradcli.engine import shape as shape_rules
from gradcli.engine import shape as shapes
from gradcli.engine.argument import unpack_list
from gradcli.engine.array import Array, unbroadcast
from gradcli.engine.composite import function
from gradcli.engine.op import op
from gradcli.engine.ops.shape.reshape import reshape
from gradcli.engine.sample import sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import ShapeError


@op(
    shares="repeats",
    double_backward="linear",
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
    target = [x.shape[d - extra] if s == -1 and d >= extra else s for d, s in enumerate(size)]
    return x.expand(shape_rules.check_shape(target, "expand"))


@expand.gradient
def expand_gradient(grad: Array, *, shapes: tuple[Shape]) -> Array:
    """Summed over what was repeated."""
    return unbroadcast(grad, shapes[0])


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
    return expand(input, other.shape)


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
    return expand(input, tuple(size))


@function(
    shares="repeats",
    samples=[
        sample((3,), (4,)),
        sample((2,), (3,), (1,), indexing="xy"),
        sample((), (3,)),
        sample((5,), indexing="xy"),
    ],
    method=False,
)
def meshgrid(
    *tensors: Tensor | Sequence[Tensor], indexing: Literal["ij", "xy"] = "ij"
) -> tuple[Tensor, ...]:
    """Each vector expanded over all others' dimensions, as views; 'xy' exchanges the first two."""
    vectors = [
        reshape(t, -1) if t.ndim == 0 else t for t in unpack_list("meshgrid", "tensors", tensors)
    ]
    if not vectors or any(t.ndim != 1 for t in vectors):
        raise ShapeError(f"meshgrid: needs vectors, got shapes {[t.shape for t in vectors]}")
    swapped = indexing == "xy" and len(vectors) > 1
    if swapped:
        vectors[:2] = vectors[1::-1]
    sizes = [t.numel() for t in vectors]
    grids = []
    for d, t in enumerate(vectors):
        shape = [size if d == k else 1 for k, size in enumerate(sizes)]
        grids.append(expand(reshape(t, shape), sizes))
    if swapped:
        grids[:2] = grids[1::-1]
    return tuple(grids)


@function(
    shares="repeats",
    method=False,
    samples=[sample((3, 1), (1, 4)), sample((2, 3), (3,), ()), sample((1,), (0, 3)), sample((4,))],
    wrong=[wrong(sample((3,), (4,)), "shapes (3,) and (4,) do not broadcast")],
)
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All expanded to their common shape, as views."""
    shape: tuple[int, ...] = ()
    for x in tensors:
        shape = shapes.broadcast(shape, x.shape, "broadcast_tensors")
    return tuple(expand(x, shape) for x in tensors)
