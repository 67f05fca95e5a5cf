"""Along: a shape seen as (outer, n, inner), the form in which kernels reduce along n."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.dataclass import dataclass
from gradcli.engine import shape as shapes
from gradcli.engine.array import Array, empty
from gradcli.engine.dtype import DType
from gradcli.engine.shape import Shape, contiguous_strides
from gradcli.errors import DTypeError


@dataclass(frozen=True)
class Along:
    """How arrays of one shape become (outer, n, inner), and back.

    Attributes:
        shape: the whole shape.
        dims: what is reduced, ascending.
        order: the dimensions as they lie once neighbours in `dims` are brought together.
        lines: (outer, n, inner).
        in_order: whether `order` moves nothing, as along the last dimension.
    """

    shape: Shape
    dims: tuple[int, ...]
    order: tuple[int, ...]
    lines: tuple[int, int, int]
    in_order: bool

    def fold(self, x: Array) -> Array:
        """An array of the whole shape as (outer, n, inner), contiguous."""
        if not self.in_order:
            x = x.permute(self.order)
        return x.contiguous().view(self.lines, contiguous_strides(self.lines))

    def fold_result(self, y: Array) -> Array:
        """An array of the reduced shape, with or without its size-1 dims, as (outer, 1, inner)."""
        return y.contiguous().reshape(self.results)

    def unfold(self, x: Array) -> Array:
        """(outer, n, inner), contiguous, back in the whole shape."""
        if self.in_order:
            return x.view(self.shape, contiguous_strides(self.shape))
        whole = x.reshape(tuple(self.shape[d] for d in self.order))
        return whole.permute([self.order.index(d) for d in range(len(self.order))])

    @property
    def results(self) -> tuple[int, int, int]:
        """(outer, 1, inner)."""
        return (self.lines[0], 1, self.lines[2])

    def empty(self, dtype: DType) -> Array:
        """A fresh array for the results."""
        return empty(self.results, dtype)

    def whole(self, dtype: DType) -> Array:
        """A fresh array (outer, n, inner)."""
        return empty(self.lines, dtype)


def along(shape: Shape, dims: Sequence[int]) -> Along:
    """`shape` reduced over `dims`; dims that are no neighbours move to the end."""
    return _along(shape, tuple(dims))


@shapes.remembered
def _along(shape: Shape, dims: Shape) -> Along:
    every = tuple(range(len(shape)))
    n = shapes.numel(tuple(shape[d] for d in dims))
    if dims == tuple(range(dims[0] if dims else 0, dims[-1] + 1 if dims else 0)):
        first, last = (dims[0], dims[-1] + 1) if dims else (len(shape), len(shape))
        outer, inner = shapes.numel(shape[:first]), shapes.numel(shape[last:])
        return Along(shape, dims, every, (outer, n, inner), True)
    rest = tuple(d for d in every if d not in dims)
    outer = shapes.numel(tuple(shape[d] for d in rest))
    return Along(shape, dims, rest + dims, (outer, n, 1), False)


def floats(op: str, x: Array, dtype: DType | None = None) -> Array:
    """`x`, cast to `dtype` if one is given; refuses what is no float then."""
    x = x if dtype is None or dtype is x.dtype else x.cast(dtype)
    if not x.dtype.is_floating_point:
        raise DTypeError(
            f"{op}: x must be float32, float64 or bfloat16, got {x.dtype.name}; use x.float()"
        )
    return x


def match(op: str, x: Array, **inputs: Array | None) -> None:
    """Refuse inputs whose element type differs from that of x."""
    for name, array in inputs.items():
        if array is not None and array.dtype is not x.dtype:
            raise DTypeError(
                f"{op}: {name} is {array.dtype.name} and x {x.dtype.name}; both must be the same"
            )
