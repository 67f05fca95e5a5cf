"""The same elements in another shape: views where the memory allows it."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.engine import shape as shape_rules
from gradcli.engine.array import Array
from gradcli.engine.composite import function
from gradcli.engine.kind import Sizes
from gradcli.engine.op import op
from gradcli.engine.sample import sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError


@op(
    shares="either",
    double_backward="linear",
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


@op(double_backward="linear", samples=[sample(shape) for shape in ((3, 5), (4, 1), (), (0, 2))])
def clone(x: Array) -> Array:
    """The same elements in memory of their own; gradients pass through."""
    return x.copy()


@clone.gradient
def clone_gradient(grad: Array) -> Array:
    """Unchanged."""
    return grad


def own_memory(result: Tensor, input: Tensor) -> Tensor:
    """The result; a copy where it is only a view of the input, which it must not be."""
    shared = result.array.storage is input.array.storage
    return clone(result) if shared else result


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
    result = reshape(input, *shape)
    if input.numel() and result.array.storage is not input.array.storage:
        raise ShapeError(
            f"view: shape {input.shape} with strides {input.stride()} has no such view; use reshape"
        )
    return result


@function(shares="either", samples=[sample(shape) for shape in ((3, 5), (2, 1, 4), (), (0, 3))])
def contiguous(input: Tensor) -> Tensor:
    """The tensor itself when its elements lie in order, otherwise a copy where they do."""
    return input if input.is_contiguous() else clone(input)


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
    shape = (*input.shape[:first], merged, *input.shape[last + 1 :])
    return reshape.ran([input], {"shape": shape})


@function(
    shares="view",
    samples=[
        sample((3, 1, 5)),
        sample((1, 3, 1), dim=0),
        sample((1, 2, 1, 3, 1), dim=(0, -1)),
        sample((3, 5), dim=1),
        sample((0, 1)),
    ],
)
def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Without its dimensions of size 1, or without those named."""
    dims = shape_rules.dim_set(dim, input.ndim, "squeeze")
    sizes = tuple([s for d, s in enumerate(input.shape) if s != 1 or d not in dims])
    return reshape.ran([input], {"shape": sizes})


@function(
    shares="view",
    samples=[
        sample((3, 5), dim=1),
        sample((2, 1), dim=-1),
        sample((), dim=0),
        sample((0, 3), dim=2),
    ],
)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With one more dimension, of size 1, at `dim`."""
    at = shape_rules.dim_index(dim, input.ndim + 1, "unsqueeze")
    return reshape.ran([input], {"shape": (*input.shape[:at], 1, *input.shape[at:])})


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
    return reshape(input, (*input.shape[:d], *inside, *input.shape[d + 1 :]))


@function(shares="either", samples=[sample((3, 5)), sample((2, 1, 4)), sample(()), sample((0, 3))])
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension."""
    flat = reshape(input, -1) if input.numel() else reshape(input, 0)
    return flat if input.is_contiguous() else own_memory(flat, input)


# Cut into more dimensions, which memory of every layout can be.
@function(
    shares="view",
    samples=[
        sample((6,), (2, 3)),
        sample((4, 6), (4, 2, 3)),
        sample((), (1,)),
        sample((0, 2), (0, 2)),
    ],
)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of another tensor."""
    return view(input, *other.shape)


@function(
    shares="either",
    samples=[
        sample((3, 4), (2, 6)),
        sample((2, 1, 3), (6,)),
        sample((), (1, 1)),
        sample((0, 2), (3, 0)),
    ],
)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The elements in the shape of another tensor."""
    return reshape(input, other.shape)
