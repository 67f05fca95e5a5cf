"""The Euclidean norm, with a gradient that reads its input once."""

from __future__ import annotations

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine.array import Array, empty, run, scalar
from gradcli.engine.op import op
from gradcli.engine.ops.along import along, floats
from gradcli.engine.ops.elementwise.elementwise import mul, sqrt
from gradcli.engine.ops.family import map_binary, map_unary
from gradcli.engine.ops.index.where import where
from gradcli.engine.ops.reduce.reduce import SAMPLES, WRONG, Dim
from gradcli.engine.ops.reduce.reduce import sum as total
from gradcli.engine.sample import wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor


def _composed(x: Tensor, *, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """The root is not asked for its slope at 0, which is infinite."""
    squares = total(mul(x, x), dim, keepdim)
    none = squares == 0
    return where(none, 0.0, sqrt(where(none, 1.0, squares)))


@op(
    method=False,
    saves=("x", "y"),
    composed=_composed,
    twice="composed",
    samples=SAMPLES,
    wrong=[*WRONG, wrong(SAMPLES[0], "vector_norm: x must be float", dtype="int64")],
)
def vector_norm(x: Array, *, dim: Dim = None, keepdim: bool = False) -> Array:
    """The root of the sum of the squares over `dim`, or over everything."""
    floats("vector_norm", x)
    dims = shapes.dim_set(dim, x.ndim, "vector_norm")
    shape = shapes.reduced(x.shape, dims, keepdim)
    if len(dims) == x.ndim:
        squares = empty((1,), dtypes.float64)
        run("sum_squares", x.contiguous(), squares)
        y = map_unary("sqrt", squares)
        return (y if x.dtype is y.dtype else y.cast(x.dtype)).reshape(shape)
    lines = along(x.shape, dims)
    lengths = lines.empty(x.dtype)
    run("length", lines.fold(x), lengths)
    return lengths.reshape(shape)


@vector_norm.gradient
def vector_norm_gradient(
    grad: Array, *, x: Array, y: Array, dim: Dim, shapes: tuple[Shape, ...]
) -> Array:
    """X / norm; 0 where the norm is 0, for all of x is 0 there.

    The gradient comes last: divided by a norm that is subnormal it would be infinite.
    """
    kept = _kept(shapes[0], dim)
    nothing = map_binary("eq", y, scalar(0, y.dtype), dtypes.bool_).cast(y.dtype)
    direction = map_binary("div", x, map_binary("add", y, nothing).reshape(kept))
    return map_binary("mul", direction, grad.reshape(kept))


def _kept(shape: Shape, dim: Dim) -> Shape:
    """The reduced shape, with size 1 where it was reduced."""
    return shapes.reduced(shape, shapes.dim_set(dim, len(shape), "vector_norm"), keepdim=True)
