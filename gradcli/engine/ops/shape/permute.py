"""Dimensions in another order: views."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.engine import shape as shape_rules
from gradcli.engine.array import Array
from gradcli.engine.composite import function
from gradcli.engine.op import op
from gradcli.engine.sample import sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError


@op(
    shares="view",
    double_backward="linear",
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


# Shapes, and the dimensions that are exchanged.
_SWAPS = [((3, 5), 0, 1), ((2, 1, 4), -1, 0), ((2, 3), 1, 1), ((), 0, -1), ((2, 0, 3), 1, 2)]


@function(shares="view", samples=[sample(s, dim0=a, dim1=b) for s, a, b in _SWAPS])
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two dimensions exchanged."""
    a = shape_rules.dim_index(dim0, input.ndim, "transpose")
    b = shape_rules.dim_index(dim1, input.ndim, "transpose")
    return _exchanged(input, a, b)


def _exchanged(input: Tensor, a: int, b: int) -> Tensor:
    order = list(range(input.ndim))
    if order:
        order[a], order[b] = order[b], order[a]
    return permute.ran([input], {"dims": tuple(order)})


@function(
    shares="view",
    samples=[sample((3, 5)), sample((4, 1)), sample((4,)), sample(()), sample((0, 3))],
    wrong=[wrong(sample((2, 3, 4)), "at most 2 dimensions")],
)
def t(input: Tensor) -> Tensor:
    """A matrix transposed; vectors and numbers as they are."""
    if input.ndim > 2:
        raise ShapeError(f"t: at most 2 dimensions, got shape {input.shape}; use transpose")
    return _exchanged(input, 0, 1) if input.ndim == 2 else input


_MOVES = [
    sample((2, 3, 4), source=0, destination=-1),
    sample((2, 1, 3, 4), source=(0, 2), destination=(1, 0)),
    sample((), source=0, destination=0),
    sample((0, 3), source=1, destination=0),
]


@function(shares="view", samples=_MOVES)
def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """A view with the dims `source` at `destination`, the rest in order."""
    sources = (source,) if isinstance(source, int) else tuple(source)
    destinations = (destination,) if isinstance(destination, int) else tuple(destination)
    from_dims = [shape_rules.dim_index(d, input.ndim, "movedim") for d in sources]
    to_dims = [shape_rules.dim_index(d, input.ndim, "movedim") for d in destinations]
    if not len(set(from_dims)) == len(sources) == len(destinations) == len(set(to_dims)):
        raise OptionError(f"movedim: cannot move dims {sources} to {destinations} one by one")
    if not input.ndim:
        return input
    moved = dict(zip(to_dims, from_dims, strict=True))
    rest = iter(d for d in range(input.ndim) if d not in from_dims)
    order = [moved[d] if d in moved else next(rest) for d in range(input.ndim)]
    return permute(input, order)


function("moveaxis", shares="view", samples=_MOVES)(movedim)


@function(shares="view", samples=[sample(s, axis0=a, axis1=b) for s, a, b in _SWAPS])
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """A view with two dimensions exchanged."""
    return transpose(input, axis0, axis1)


@function(shares="view", samples=[sample(s, dim0=a, dim1=b) for s, a, b in _SWAPS])
def swapdims(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """A view with two dimensions exchanged."""
    return transpose(input, dim0, dim1)
