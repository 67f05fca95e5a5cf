"""Reductions composed of simpler ops: products, norms, logsumexp."""

from __future__ import annotations

from math import inf

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine.composite import function
from gradcli.engine.dtype import DType
from gradcli.engine.ops.elementwise.elementwise import add, clamp, exp, log, mul
from gradcli.engine.ops.index.where import where
from gradcli.engine.ops.reduce.extreme import amax, amin
from gradcli.engine.ops.reduce.length import vector_norm
from gradcli.engine.ops.reduce.reduce import Dim, mean, std, var
from gradcli.engine.ops.reduce.reduce import sum as total
from gradcli.engine.ops.shape.join import cat
from gradcli.engine.ops.shape.reshape import own_memory, reshape
from gradcli.engine.sample import away_from, index, sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError


def _part(x: Tensor, d: int, start: int, stop: int) -> Tensor:
    """A view of the slices start to stop along d."""
    return x[(*(slice(None),) * d, slice(start, stop))]


def _counted(x: Tensor, dtype: DType | None) -> Tensor:
    """As torch adds and multiplies: whole numbers and bools as int64."""
    chosen = dtype or (x.dtype if x.is_floating_point() else dtypes.int64)
    return x if x.dtype is chosen else x.to(chosen)


def _floating(name: str, x: Tensor, dtype: DType | None = None) -> Tensor:
    if dtype is not None:
        x = x.to(dtype)
    if not x.is_floating_point():
        raise DTypeError(f"{name}: input must be float32, float64 or bfloat16, got {x.dtype}")
    return x


@function(
    samples=[
        sample((3, 5)),
        sample((2, 7, 3), dim=1),
        sample((3, 1), dim=-1, keepdim=True),
        sample((4,), dtype=dtypes.float64),
        sample(index((2, 3), 5), dim=0),
        sample((0, 3), dim=0),
    ],
    wrong=[wrong(sample((2, 3), dim=2), "prod: dim 2 is outside -2..1")],
)
def prod(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """Product along `dim`, or of everything; 1 for nothing. Halves are multiplied pair by pair."""
    dims = shapes.dim_set(dim, input.ndim, "prod")
    shape = shapes.reduced(input.shape, dims, keepdim)
    x = _counted(input, dtype)
    d = 0 if dim is None or not dims else dims[0]
    x = reshape(x, (x.numel(),)) if dim is None or not dims else x
    size = x.shape[d]
    if not size:
        return reshape(add(total(x, d), 1), shape)
    while size > 1:
        half = size // 2
        y = mul(_part(x, d, 0, half), _part(x, d, half, 2 * half))
        x = cat([y, _part(x, d, 2 * half, size)], d) if size % 2 else y
        size = x.shape[d]
    return own_memory(reshape(x, shape), input)  # the product of one number is that number


@function(
    samples=[
        sample((3, 5), dim=1),
        sample((2, 3, 4), dim=(0, -1), keepdim=True),
        sample((4, 1), dim=-1),
        sample((), dim=0),
        sample((3, 0), dim=1),
    ],
    wrong=[wrong(sample((2, 3), dim=(0, 0)), "logsumexp: dim (0, 0) names one dimension twice")],
)
def logsumexp(input: Tensor, dim: Dim, keepdim: bool = False) -> Tensor:
    """log(sum(exp(x))) over `dim`, with the maximum taken off first."""
    x = input if input.is_floating_point() else input.to(dtypes.float32)
    dims = shapes.dim_set(dim, x.ndim, "logsumexp")
    shape = shapes.reduced(x.shape, dims, keepdim)
    if not x.numel():
        return total(x, dim, keepdim) - inf
    # Of an infinite maximum the largest number is taken off: inf - inf would be NaN.
    largest = dtypes.LARGEST[x.dtype]
    top = clamp(amax(x.detach(), dim, keepdim=True), -largest, largest)
    result = log(total(exp(x - top), dim, keepdim=True)) + top
    return reshape(result, shape)


def _power_norm(size: Tensor, p: float, dim: Dim, keepdim: bool) -> Tensor:
    """(sum of size^p)^(1 / p). Where it is 0 so is the slope: the powers alone would give NaN."""
    end = 0.0 if p > 0 else inf  # what 0 to the power p is, and the sum where the norm is 0
    nothing = size == 0
    powers = total(where(nothing, end, where(nothing, 1.0, size) ** p), dim, keepdim)
    none = powers == end
    return where(none, 0.0, where(none, 1.0, powers) ** (1 / p))


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
    wrong=[
        wrong(sample((2, 3), p="nuc"), "norm: p must be a number or 'fro', got 'nuc'"),
        wrong(sample((2, 3)), "norm: input must be float32, float64 or bfloat16", dtype="int64"),
    ],
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
        return total(where(x != 0, 1.0, abs(x)), dim, keepdim)
    if order == 2:
        return vector_norm(x, dim, keepdim)
    size = abs(x)
    plain = {1.0: total, inf: amax, -inf: amin}.get(order)
    if plain is not None:
        return plain(size, () if dim is None else dim, keepdim)
    return _power_norm(size, order, dim, keepdim)


_SPREADS = [
    sample((3, 5)),
    sample((2, 3, 4), dim=(0, -1), keepdim=True),
    sample((5, 2), dim=0, unbiased=False),
    sample((4, 1), dim=0, correction=2),
    sample((0, 3), dim=1),
]


@function(samples=_SPREADS)
def std_mean(
    input: Tensor,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float = 1,
) -> tuple[Tensor, Tensor]:
    """The standard deviation, as std gives it, and the mean, over `dim` or over everything."""
    spread = std(input, dim, unbiased, keepdim, correction=correction)
    return spread, mean(input, dim, keepdim)


@function(samples=_SPREADS)
def var_mean(
    input: Tensor,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float = 1,
) -> tuple[Tensor, Tensor]:
    """The variance, as var gives it, and the mean, over `dim` or over everything."""
    spread = var(input, dim, unbiased, keepdim, correction=correction)
    return spread, mean(input, dim, keepdim)
