"""References of reductions, softmax, norms and losses, in plain Python float64."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from grid import Grid, indices, pick

Dim = int | Sequence[int] | None


def dims_of(x: Grid, dim: Dim) -> list[int]:
    if dim is None or dim == ():
        return list(range(x.ndim))
    named = [dim] if isinstance(dim, int) else dim
    return sorted(d % x.ndim for d in named) if x.ndim else []


def reduce(x: Grid, dim: Dim, keepdim: bool, f: Callable[[list[Any]], Any]) -> Grid:
    """`f` of the elements along `dim`, in row-major order."""
    dims = dims_of(x, dim)
    kept = [1 if d in dims else size for d, size in enumerate(x.shape)]

    def gathered(at: tuple[int, ...]) -> list[Any]:
        ranges = [range(x.shape[d]) if d in dims else (at[d],) for d in range(x.ndim)]
        return [x[i] for i in itertools.product(*ranges)]

    y = Grid.from_function(kept, lambda at: f(gathered(at)))
    return y if keepdim else Grid([s for d, s in enumerate(x.shape) if d not in dims], y.flat)


def average(numbers: Sequence[float]) -> float:
    return math.fsum(numbers) / len(numbers) if numbers else math.nan


def _sum(x: Grid, dim: Dim = None, keepdim: bool = False, dtype: Any = None) -> Grid:
    return reduce(x, dim, keepdim, math.fsum)


def _mean(x: Grid, dim: Dim = None, keepdim: bool = False, dtype: Any = None) -> Grid:
    return reduce(x, dim, keepdim, average)


def _var(
    x: Grid,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    correction: float | None = 1,
) -> Grid:
    off = (1 if correction is None else correction) if unbiased is None else float(unbiased)

    def variance(numbers: list[float]) -> float:
        squares = math.fsum((v - average(numbers)) ** 2 for v in numbers)
        free = max(0.0, len(numbers) - off)
        return squares / free if free else math.nan

    return reduce(x, dim, keepdim, variance)


def _std(x: Grid, **options: Any) -> Grid:
    y = _var(x, **options)
    return Grid(y.shape, [math.sqrt(v) for v in y.flat])


def extreme(choose: Callable[[list[float]], float]) -> Callable[..., Grid]:
    return lambda x, dim=(), keepdim=False: reduce(x, dim, keepdim, choose)


def place(choose: Callable[[list[float]], float]) -> Callable[..., Grid]:
    return lambda x, dim=None, keepdim=False: reduce(
        x, dim, keepdim, lambda numbers: numbers.index(choose(numbers))
    )


def both(choose: Callable[[list[float]], float]) -> Callable[..., tuple[Grid, Grid]]:
    return lambda x, dim, keepdim=False: (
        extreme(choose)(x, dim, keepdim),
        place(choose)(x, dim, keepdim),
    )


def row_of(x: Grid, at: tuple[int, ...], d: int) -> list[float]:
    """The elements along dimension d through `at`."""
    return [x[(*at[:d], i, *at[d + 1 :])] for i in range(x.shape[d])]


def _log_softmax(x: Grid, dim: int, dtype: Any = None) -> Grid:
    if not x.ndim:
        return Grid((), [0.0])
    d = dim % x.ndim

    def at_index(at: tuple[int, ...]) -> float:
        row = row_of(x, at, d)
        return x[at] - max(row) - math.log(math.fsum(math.exp(v - max(row)) for v in row))

    return Grid.from_function(x.shape, at_index)


def _softmax(x: Grid, dim: int, dtype: Any = None) -> Grid:
    y = _log_softmax(x, dim)
    return Grid(y.shape, [math.exp(v) for v in y.flat])


def normalised(v: float, mean: float, variance: float, eps: float) -> float:
    return (v - mean) / math.sqrt(variance + eps)


def _layer_norm(
    x: Grid,
    weight: Grid | None,
    bias: Grid | None,
    normalized_shape: int | Sequence[int],
    eps: float = 1e-5,
) -> Grid:
    count = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    dims = tuple(range(x.ndim - count, x.ndim))
    mean, variance = _mean(x, dims, True), _var(x, dims, None, True, 0)

    def at_index(at: tuple[int, ...]) -> float:
        row = (*at[: x.ndim - count], *(0,) * count)
        last = at[x.ndim - count :]
        y = normalised(x[at], mean[row], variance[row], eps)
        return y * (weight[last] if weight else 1) + (bias[last] if bias else 0)

    return Grid.from_function(x.shape, at_index)


def _batch_norm(
    x: Grid,
    running_mean: Grid | None,
    running_var: Grid | None,
    weight: Grid | None,
    bias: Grid | None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Grid:
    dims = (0, *range(2, x.ndim))
    mean, variance = running_mean, running_var
    if training:
        mean, variance = _mean(x, dims), _var(x, dims, None, False, 0)
    assert mean and variance

    def at_index(at: tuple[int, ...]) -> float:
        c = (at[1],)
        y = normalised(x[at], mean[c], variance[c], eps)
        return y * (weight[c] if weight else 1) + (bias[c] if bias else 0)

    return Grid.from_function(x.shape, at_index)


def _group_norm(
    x: Grid, weight: Grid | None, bias: Grid | None, num_groups: int, eps: float = 1e-5
) -> Grid:
    width = x.shape[1] // num_groups
    inside = tuple(range(2, x.ndim + 1))
    groups = Grid((x.shape[0], num_groups, width, *x.shape[2:]), x.flat)
    mean, variance = _mean(groups, inside, True), _var(groups, inside, None, True, 0)

    def at_index(at: tuple[int, ...]) -> float:
        group = (at[0], at[1] // width, *(0,) * len(inside))
        y = normalised(x[at], mean[group], variance[group], eps)
        return y * (weight[at[1:2]] if weight else 1) + (bias[at[1:2]] if bias else 0)

    return Grid.from_function(x.shape, at_index)


def reduced(losses: Grid, reduction: str, total: float) -> Grid:
    if reduction == "none":
        return losses
    added = math.fsum(losses.flat)
    if reduction == "sum":
        return Grid((), [added])
    return Grid((), [added / total if total else math.nan])


def _nll_loss(
    logs: Grid,
    target: Grid,
    weight: Grid | None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Grid:
    d = 0 if logs.ndim == 1 else 1
    losses, total = [], 0.0
    for at in indices(target.shape):
        label = target[at]
        row = row_of(logs, (*at[:d], 0, *at[d:]), d)
        weights = weight.flat if weight else [1.0] * len(row)
        if label == ignore_index:
            losses.append(0.0)
            continue
        smooth = -math.fsum(w * v for w, v in zip(weights, row, strict=True)) / len(row)
        exact = -weights[label] * row[label]
        losses.append((1 - label_smoothing) * exact + label_smoothing * smooth)
        total += weights[label]
    return reduced(Grid(target.shape, losses), reduction, total)


def _cross_entropy(x: Grid, target: Grid, weight: Grid | None, **options: Any) -> Grid:
    return _nll_loss(_log_softmax(x, 0 if x.ndim == 1 else 1), target, weight, **options)


def _mse_loss(x: Grid, target: Grid, reduction: str = "mean") -> Grid:
    squares = [(a - b) ** 2 for a, b in zip(x.flat, target.flat, strict=True)]
    return reduced(Grid(x.shape, squares), reduction, len(squares))


def _vector_norm(x: Grid, dim: Dim = None, keepdim: bool = False) -> Grid:
    return reduce(x, dim, keepdim, lambda values: math.sqrt(sum(v * v for v in values)))


def _logsumexp(input: Grid, dim: Dim, keepdim: bool = False) -> Grid:
    def logarithm(numbers: list[float]) -> float:
        total = math.fsum(map(math.exp, numbers))
        return math.log(total) if total else -math.inf

    return reduce(input, dim, keepdim, logarithm)


def _over_rms(x: Grid, last: int, eps: float) -> Grid:
    squares = _mean(Grid(x.shape, [v * v for v in x.flat]), range(-last, 0), keepdim=True)
    return Grid.from_function(x.shape, lambda at: x[at] / math.sqrt(pick(squares, at) + eps))


def _truth(f: Callable[[list[Any]], bool]) -> Callable[..., Grid]:
    return lambda x, dim=None, keepdim=False: reduce(x, dim, keepdim, f)


def _prod(x: Grid, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Grid:
    return reduce(x, dim, keepdim, math.prod)


def _running(join: Callable[[float, float], float], start: float) -> Callable[..., Grid]:
    def run(x: Grid, dim: int, dtype: Any = None) -> Grid:
        def until(at: tuple[int, ...]) -> float:
            if not at:
                return x[at]
            d = dim % x.ndim
            value = start
            for i in range(at[d] + 1):
                value = join(value, x[(*at[:d], i, *at[d + 1 :])])
            return value

        return Grid.from_function(x.shape, until)

    return run


REFERENCES: dict[str, Callable[..., Any]] = {
    "vector_norm": _vector_norm,
    "logsumexp": _logsumexp,
    "over_rms": _over_rms,
    "any": _truth(any),
    "all": _truth(all),
    "cumsum": _running(lambda a, b: a + b, 0.0),
    "cumprod": _running(lambda a, b: a * b, 1.0),
    "prod": _prod,
    "sum": _sum,
    "mean": _mean,
    "var": _var,
    "std": _std,
    "amax": extreme(max),
    "amin": extreme(min),
    "argmax": place(max),
    "argmin": place(min),
    "max": both(max),
    "min": both(min),
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "layer_norm": _layer_norm,
    "batch_norm": _batch_norm,
    "group_norm": _group_norm,
    "cross_entropy": _cross_entropy,
    "nll_loss": _nll_loss,
    "mse_loss": _mse_loss,
}
