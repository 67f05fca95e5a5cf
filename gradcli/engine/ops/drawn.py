"""More tensors made from nothing: like another one, on a grid of powers, and drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import recording
from gradcli.engine import shape as shapes
from gradcli.engine.dtype import DType
from gradcli.engine.function import function
from gradcli.engine.ops.creation import empty, full, linspace, ones, tensor, zeros
from gradcli.engine.ops.elementwise import clamp, eq, gt, log, lt, minimum, ne
from gradcli.engine.ops.functions import log1p
from gradcli.engine.ops.index import where
from gradcli.engine.ops.inplace import overwrite
from gradcli.engine.ops.movement import expand, getitem
from gradcli.engine.ops.random import rand, randint, randn
from gradcli.engine.ops.reduce import sum as total
from gradcli.engine.ops.running import cumsum
from gradcli.engine.ops.sort import searchsorted, topk
from gradcli.engine.random import Generator
from gradcli.engine.tensor import Tensor, refuse_recorded
from gradcli.errors import DTypeError, OptionError, ShapeError

# -- like another one ------------------------------------------------------------------------------


@function()
def new_zeros(
    input: Tensor, *size: Any, dtype: DType | None = None, requires_grad: bool = False
) -> Tensor:
    """0 everywhere, in the type of another tensor."""
    return zeros(*size, dtype=dtype or input.dtype, requires_grad=requires_grad)


@function()
def new_ones(
    input: Tensor, *size: Any, dtype: DType | None = None, requires_grad: bool = False
) -> Tensor:
    """1 everywhere, in the type of another tensor."""
    return ones(*size, dtype=dtype or input.dtype, requires_grad=requires_grad)


@function()
def new_empty(
    input: Tensor, *size: Any, dtype: DType | None = None, requires_grad: bool = False
) -> Tensor:
    """Undefined values, in the type of another tensor."""
    return empty(*size, dtype=dtype or input.dtype, requires_grad=requires_grad)


@function()
def new_full(
    input: Tensor,
    size: Sequence[int],
    fill_value: float,
    *,
    dtype: DType | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """One value everywhere, in the type of another tensor."""
    return full(size, fill_value, dtype=dtype or input.dtype, requires_grad=requires_grad)


@function()
def new_tensor(
    input: Tensor, data: Any, *, dtype: DType | None = None, requires_grad: bool = False
) -> Tensor:
    """A new tensor from data, in the type of another tensor."""
    return tensor(data, dtype=dtype or input.dtype, requires_grad=requires_grad)


@function(method=False)
def logspace(
    start: float, end: float, steps: int, base: float = 10.0, *, dtype: DType | None = None
) -> Tensor:
    """`base` to the power of evenly spaced numbers from start to end, both included."""
    powers = linspace(start, end, steps, dtype=dtypes.float64)
    made: Tensor = (base**powers).to(dtype or dtypes.float32)
    return made


@function(method=False)
def tril_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """The places of a lower triangle of (row, col), row by row: int64 (2, count)."""
    shapes.checked((row, col), "tril_indices")
    places = [(i, j) for i in range(row) for j in range(max(0, min(col, i + offset + 1)))]
    return tensor([[p[k] for p in places] for k in (0, 1)], dtype=dtypes.int64)


@function(method=False)
def triu_indices(row: int, col: int, offset: int = 0) -> Tensor:
    """The places of an upper triangle of (row, col), row by row: int64 (2, count)."""
    shapes.checked((row, col), "triu_indices")
    places = [(i, j) for i in range(row) for j in range(max(0, i + offset), col)]
    return tensor([[p[k] for p in places] for k in (0, 1)], dtype=dtypes.int64)


# -- drawn -----------------------------------------------------------------------------------------


@function(method=False)
def randint_like(
    input: Tensor, low: int, high: int | None = None, *, dtype: DType | None = None
) -> Tensor:
    """Whole numbers from low to below high, in the shape and type of another tensor."""
    low, high = (0, low) if high is None else (low, high)
    return randint(low, high, input.shape, dtype=dtype or input.dtype)


@function(method=False)
def normal(
    mean: Tensor | float = 0.0,
    std: Tensor | float = 1.0,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """Normally distributed numbers, each with its mean and its standard deviation."""
    given = [x for x in (mean, std) if isinstance(x, Tensor)]
    if not given:
        if size is None:
            raise OptionError("normal: with two numbers a size is needed")
        return randn(*size, generator=generator, dtype=dtype) * std + mean
    if size is not None:
        raise OptionError("normal: the size is that of mean and std, and is not given")
    shape = shapes.broadcast(given[0].shape, given[-1].shape, "normal")
    drawn: Tensor = randn(*shape, generator=generator, dtype=given[0].dtype) * std + mean
    return drawn


@function()
def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None
) -> Tensor:
    """1 with the probability that the element is, or p for all, otherwise 0."""
    if not input.is_floating_point():
        raise DTypeError(f"bernoulli: input must be float32 or float64, got {input.dtype}")
    if p is not None and not 0 <= p <= 1:
        raise OptionError(f"bernoulli: p must be from 0 to 1, got {p}")
    drawn = rand(*input.shape, generator=generator, dtype=input.dtype)
    hit: Tensor = lt(drawn, input.detach() if p is None else p).to(input.dtype)
    return hit


@function("bernoulli_")
def bernoulli_(
    input: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None
) -> Tensor:
    """Every element overwritten by 1 with probability p, otherwise by 0."""
    refuse_recorded("bernoulli_", input)
    chances = p if isinstance(p, Tensor) else full((), p, dtype=dtypes.float64)
    return overwrite("bernoulli_", input, _hits(expand(chances, input.shape), generator, input))


def _hits(chances: Tensor, generator: Generator | None, input: Tensor) -> Tensor:
    hit: Tensor = bernoulli(chances, generator=generator).to(input.dtype)
    return hit


def _check_weights(weights: Tensor, count: int, replacement: bool) -> None:
    """Refuse what cannot be drawn from; a captured step takes it for granted."""
    if recording.current() is not None:
        return
    bad = lt(weights, 0) | ne(weights - weights, 0)
    if total(bad).item():
        raise OptionError("multinomial: weights must be finite and not negative")
    least = 1 if replacement else count
    if total(lt(total(gt(weights, 0), -1), least)).item():
        raise OptionError(f"multinomial: a row has fewer than {least} weights above 0")


@function()
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Places drawn from each row with probabilities in proportion to its weights.

    Without replacement the places of the largest log(weight) plus Gumbel noise, which are those of
    one draw after another (Efraimidis and Spirakis 2006).
    """
    if input.ndim not in (1, 2) or not input.is_floating_point():
        raise ShapeError(
            f"multinomial: weights must be floats in 1 or 2 dimensions, got {input.dtype} "
            f"{input.shape}"
        )
    if num_samples < 1 or not (replacement or num_samples <= input.shape[-1]):
        raise OptionError(f"multinomial: cannot draw {num_samples} from rows of {input.shape}")
    weights = input.detach()
    _check_weights(weights, num_samples, replacement)
    if not replacement:
        waits = -log1p(-rand(*input.shape, generator=generator, dtype=input.dtype))
        score = where(eq(weights, 0), -float("inf"), log(weights) - log(waits))
        found: Tensor = topk(score, num_samples)[1]
        return found
    sums = cumsum(weights, -1)
    whole = getitem(sums, index=(Ellipsis, slice(-1, None)))
    shape = (*input.shape[:-1], num_samples)
    drawn = rand(*shape, generator=generator, dtype=input.dtype) * whole
    last = searchsorted(sums, whole.contiguous())  # a product may be rounded up to the whole
    places: Tensor = minimum(searchsorted(sums, drawn, right=True), expand(last, shape))
    return clamp(places, min=0)  # type: ignore[no-any-return]
