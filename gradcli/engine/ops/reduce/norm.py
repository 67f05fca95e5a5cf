"""Norms of vectors, and the logarithm of a sum of exponentials."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine import table
from gradcli.engine.array import Array, full, result, scalar
from gradcli.engine.composite import function
from gradcli.engine.dtype import DType
from gradcli.engine.op import op
from gradcli.engine.ops.along import along, floats
from gradcli.engine.ops.elementwise.family import as_float, map_binary, map_unary
from gradcli.engine.ops.reduce.extreme import largest_of
from gradcli.engine.ops.reduce.sum import SAMPLES, Dim, total_over
from gradcli.engine.sample import LINES, away_from, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError


def _floating(name: str, x: Tensor, dtype: DType | None = None) -> Tensor:
    if dtype is not None:
        x = x.to(dtype)
    if not x.is_floating_point():
        raise DTypeError(f"{name}: input must be float32, float64 or bfloat16, got {x.dtype}")
    return x


def _decomposed_logsumexp(input: Tensor, *, dim: Dim, keepdim: bool = False) -> Tensor:
    x = input if input.is_floating_point() else input.to(dtypes.float32)
    if not x.numel():
        return table.sum(x, dim, keepdim) - inf
    largest = dtypes.LARGEST[x.dtype]
    top = table.clamp(table.amax(x.detach(), dim, keepdim=True), -largest, largest)
    result = table.log(table.sum(table.exp(x - top), dim, keepdim=True)) + top
    dims = shapes.dim_set(dim, x.ndim, "logsumexp")
    return table.reshape(result, shapes.reduced(x.shape, dims, keepdim))


@op(
    saves=("input", "y"),
    decomposition=_decomposed_logsumexp,
    double_backward="decomposition",
    samples=[*LINES, sample((2, 3, 4), dim=(0, -1), keepdim=True)],
)
def logsumexp(input: Array, *, dim: Dim, keepdim: bool = False) -> Array:
    """log(sum(exp(x))) over `dim`, with the maximum taken off first."""
    x = as_float(input)
    dims, dtype = shapes.dim_set(dim, x.ndim, "logsumexp"), x.dtype
    shape = shapes.reduced(x.shape, dims, keepdim)
    if not x.numel:
        return full(shape, -inf, dtype)
    x = x if dtype is dtype.computed else x.cast(dtype.computed)  # bfloat16 is rounded once
    # Of an infinite maximum the largest number is taken off: inf - inf would be NaN.
    largest = dtypes.LARGEST[x.dtype]
    top = map_unary("clamp", largest_of(x, dims), (-largest, largest))
    powers = map_unary("exp", map_binary("sub", x, top))
    y = map_binary("add", map_unary("log", total_over(powers, dims)), top).reshape(shape)
    return y if y.dtype is dtype else y.cast(dtype)


@logsumexp.gradient
def logsumexp_gradient(grad: Array, *, input: Array, y: Array, dim: Dim) -> Array:
    """exp(x - y), the softmax of x; 0 beside an infinite x, which softmax would make NaN."""
    shape = shapes.reduced(input.shape, shapes.dim_set(dim, input.ndim, "logsumexp"), keepdim=True)
    shares = map_unary("exp", map_binary("sub", input, y.reshape(shape)))
    return map_binary("mul", shares, grad.reshape(shape))


def _power_norm(size: Tensor, p: float, dim: Dim, keepdim: bool) -> Tensor:
    """(sum of size^p)^(1 / p). Where it is 0 so is the slope: the powers alone would give NaN."""
    end = 0.0 if p > 0 else inf  # what 0 to the power p is, and the sum where the norm is 0
    nothing = size == 0
    powers = table.where(nothing, end, table.where(nothing, 1.0, size) ** p)
    powers = table.sum(powers, dim, keepdim)
    none = powers == end
    return table.where(none, 0.0, table.where(none, 1.0, powers) ** (1 / p))


@function(
    samples=[
        sample((3, 5)),
        sample(away_from((2, 3, 4)), p=1, dim=(0, -1)),
        sample(away_from((3, 4)), p=2.5, dim=1, keepdim=True),
        sample(away_from((3, 4)), p=inf, dim=0),
        sample(away_from((5, 1)), p=-2, dtype=dtypes.float64),
        sample(away_from((5,)), p=0),
        sample((0, 3), dim=0),
    ],
    wrong=[wrong(sample((2, 3), p="nuc"), "norm: p must be a number or 'fro', got 'nuc'")],
)
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """(sum of |x|^p)^(1 / p) over `dim`, or of all; "fro" is 2, and 0 counts what is not 0."""
    x = _floating("norm", input, dtype)
    if isinstance(p, str) and p != "fro":
        raise OptionError(f"norm: p must be a number or 'fro', got {p!r:.60}")
    order = 2.0 if p is None or isinstance(p, str) else float(p)
    if order == 0:
        # |x| is 0 where it is taken, and its slope too.
        return table.sum(table.where(x != 0, 1.0, abs(x)), dim, keepdim)
    if order == 2:
        return vector_norm(x, dim, keepdim)
    size = abs(x)
    plain: dict[float, Callable[..., Tensor]]
    plain = {1.0: table.sum, inf: table.amax, -inf: table.amin}
    if order in plain:
        return plain[order](size, () if dim is None else dim, keepdim)
    return _power_norm(size, order, dim, keepdim)


def _decomposition(x: Tensor, *, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """The root is not asked for its slope at 0, which is infinite."""
    squares = table.sum(table.mul(x, x), dim, keepdim)
    none = squares == 0
    return table.where(none, 0.0, table.sqrt(table.where(none, 1.0, squares)))


@op(
    method=False,
    saves=("x", "y"),
    decomposition=_decomposition,
    double_backward="decomposition",
    samples=SAMPLES,
)
def vector_norm(x: Array, *, dim: Dim = None, keepdim: bool = False) -> Array:
    """The root of the sum of the squares over `dim`, or over everything."""
    floats("vector_norm", x)
    dims = shapes.dim_set(dim, x.ndim, "vector_norm")
    shape = shapes.reduced(x.shape, dims, keepdim)
    if len(dims) == x.ndim:
        squares = result("sum_squares", x.contiguous(), shape=(1,), dtype=dtypes.float64)
        y = map_unary("sqrt", squares)
        return (y if x.dtype is y.dtype else y.cast(x.dtype)).reshape(shape)
    lines = along(x.shape, dims)
    lengths = result("length", lines.fold(x), shape=lines.results, dtype=x.dtype)
    return lengths.reshape(shape)


@vector_norm.gradient
def vector_norm_gradient(
    grad: Array, *, x: Array, y: Array, dim: Dim, shapes: tuple[Shape, ...]
) -> Array:
    """X / norm; 0 where the norm is 0, for all of x is 0 there.

    The gradient comes last: divided by a norm that is subnormal it would be infinite.
    """
    shape = _reduced_shape(shapes[0], dim)
    nothing = map_binary("eq", y, scalar(0, y.dtype), dtypes.bool_).cast(y.dtype)
    direction = map_binary("div", x, map_binary("add", y, nothing).reshape(shape))
    return map_binary("mul", direction, grad.reshape(shape))


def _reduced_shape(shape: Shape, dim: Dim) -> Shape:
    """The reduced shape, with size 1 where it was reduced."""
    return shapes.reduced(shape, shapes.dim_set(dim, len(shape), "vector_norm"), keepdim=True)
