"""Numbers held between limits, and the larger and smaller of two."""

from __future__ import annotations

from math import inf, isnan

from gradcli.engine import dtype as dtypes
from gradcli.engine.array import Array, scalar
from gradcli.engine.composite import function
from gradcli.engine.op import op
from gradcli.engine.ops.elementwise.family import (
    Derivative,
    Slope,
    as_float,
    binary,
    declare_slope,
    map_binary,
    map_unary,
)
from gradcli.engine.sample import away_from, distinct, sample, unit, wrong
from gradcli.engine.table import OPS
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError


@op(
    saves="x",
    samples=[
        sample(away_from((3, 5), 0.5), min=0.5),
        sample(away_from((4, 1), -0.5), max=-0.5),
        sample((0, 3), max=0.5),
        sample(away_from((2, 3), 0.5), min=-9.0, max=0.5),
    ],
    wrong=[wrong(sample((2,)), "clamp: at least one of min and max")],
)
def clamp(x: Array, *, min: float | None = None, max: float | None = None) -> Array:
    """The element held between min and max, max where min is more; NaN stays NaN."""
    limits = _limits(min, max)
    if x.dtype.is_floating_point or float in (type(min), type(max)):
        return map_unary("clamp", as_float(x), limits)
    for kernel, limit in (("maximum", min), ("minimum", max)):
        x = x if limit is None else map_binary(kernel, x, scalar(limit, x.dtype))
    return x


def _clamp_row(min: float | None, max: float | None) -> tuple[str, tuple[float, float]]:
    return "clamp", _limits(min, max)


declare_slope(clamp, _clamp_row)


def _limits(low: float | None, high: float | None) -> tuple[float, float]:
    if low is None and high is None:
        raise OptionError("clamp: at least one of min and max is needed")
    for limit in (low, high):
        if limit is not None and (not isinstance(limit, (int, float)) or isnan(limit)):
            raise OptionError(f"clamp: min and max must be numbers, got {limit!r:.60}")
    top = inf if high is None else high
    return (-inf if low is None else min(low, top), top)


def _winner(loses: str) -> tuple[Slope, Slope]:
    """All of the gradient to the input that does not lose, half to each where they are equal.

    Where one is NaN none loses, and both get all of it, as in torch.
    """

    def share(grad: Array, first: Array, second: Array) -> Array:
        lost = map_binary(loses, first, second, dtypes.bool_).cast(grad.dtype)
        tied = map_binary("eq", first, second, dtypes.bool_).cast(grad.dtype)
        half = map_binary("mul", tied, scalar(0.5, grad.dtype))
        kept = map_binary("sub", scalar(1, grad.dtype), map_binary("add", lost, half))
        return map_binary("mul", grad, kept)

    def to_input(grad: Array, *, input: Array, other: Array) -> Array:
        return share(grad, input, other)

    def to_other(grad: Array, *, input: Array, other: Array) -> Array:
        return share(grad, other, input)

    return to_input, to_other


def _winner_again(loses: str) -> tuple[Derivative, Derivative]:
    """The same with Tensors: the shares are constants."""

    def share(grad: Tensor, first: Tensor, second: Tensor) -> Tensor:
        first, second = first.detach(), second.detach()
        lost: Tensor = OPS[loses](first, second).to(grad.dtype)
        return grad * (1 - (lost + 0.5 * (first == second).to(grad.dtype)))

    return share, lambda grad, a, b: share(grad, b, a)


_DISTINCT = (sample(distinct((3, 5)), (3, 5)), sample((4, 1), (1, 3)), sample((0,), (1,)))
maximum = binary(
    "maximum",
    "The larger of two; NaN wins.",
    _winner("lt"),
    _winner_again("lt"),
    saves=("input", "other"),
    samples=_DISTINCT,
    text="a < b ? 0 : 1 (1/2 where equal); b < a ? 0 : 1",
)
minimum = binary(
    "minimum",
    "The smaller of two; NaN wins.",
    _winner("gt"),
    _winner_again("gt"),
    saves=("input", "other"),
    samples=_DISTINCT,
    text="a > b ? 0 : 1 (1/2 where equal); b > a ? 0 : 1",
)


@function(
    samples=[
        sample(away_from((3, 5), 0.5), min=0.5),
        sample(away_from((2, 1, 4), -0.5), max=-0.5),
        sample(unit((0, 3)), min=0.0, max=1.0),
    ]
)
def clip(input: Tensor, min: float | None = None, max: float | None = None) -> Tensor:
    """The same as clamp."""
    return clamp(input, min=min, max=max)
