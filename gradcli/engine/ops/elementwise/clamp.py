"""Numbers held between limits, and the larger and smaller of two."""

from __future__ import annotations

from math import inf, isinf, isnan
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import table
from gradcli.engine.array import Array, scalar
from gradcli.engine.composite import function
from gradcli.engine.op import Op, declare_op
from gradcli.engine.ops.elementwise.family import (
    Derivative,
    Slope,
    as_float,
    binary,
    declare_slope,
    map_binary,
    map_unary,
)
from gradcli.engine.sample import away_from, distinct, index, none, sample, unit, wrong
from gradcli.engine.table import OPS
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError

Limit = Tensor | float | None


class ClampOp(Op[Tensor]):
    """Goes through simpler ops where a limit is a tensor."""

    def __call__(self, *args: Any, **keywords: Any) -> Tensor:
        """The element between its limits."""
        inputs, options = self._bind(args, keywords)
        for limit in options.values():
            if isinstance(limit, Tensor):
                return _between(inputs[0], **options)
        return self.ran(inputs, options)


def _between(x: Any, min: Limit = None, max: Limit = None) -> Tensor:
    """The same with limits that may be tensors, in which NaN gives NaN.

    An element that is equal to its limit gets the gradient, and not the limit.
    """
    for limit, beyond in ((min, table.lt), (max, table.gt)):
        if limit is None:
            continue
        outside = beyond(x, limit)
        x = table.where(
            outside | (limit != limit) if isinstance(limit, Tensor) else outside, limit, x
        )
    return x  # type: ignore[no-any-return]


def _clamp(x: Array, *, min: Limit = None, max: Limit = None) -> Array:
    """The element held between min and max, max where min is more; NaN stays NaN."""
    low, high = limits = _limits(min, max)
    if x.dtype.is_floating_point or float in (type(min), type(max)):
        return map_unary("clamp", as_float(x), limits)
    for kernel, limit in (("maximum", low), ("minimum", high)):
        x = x if isinf(limit) else map_binary(kernel, x, scalar(limit, x.dtype))
    return x


clamp = declare_op(
    ClampOp(
        _clamp,
        name="clamp",
        saves="x",
        samples=[
            sample(away_from((3, 5), 0.5), min=0.5),
            sample(away_from((4, 1), -0.5), max=-0.5),
            sample((0, 3), max=0.5),
            sample(away_from((2, 3), 0.5), min=-9.0, max=0.5),
        ],
        wrong=[wrong(sample((2,)), "clamp: at least one of min and max")],
    )
)


def _clamp_row(min: Limit, max: Limit) -> tuple[str, tuple[float, float]]:
    return "clamp", _limits(min, max)


declare_slope(clamp, _clamp_row)


def _limits(low: Limit, high: Limit) -> tuple[float, float]:
    if low is None and high is None:
        raise OptionError("clamp: at least one of min and max is needed")
    top = _limit(high, inf)
    return min(_limit(low, -inf), top), top


def _limit(limit: Limit, otherwise: float) -> float:
    if limit is None:
        return otherwise
    if not isinstance(limit, (int, float)) or isnan(limit):
        raise OptionError(f"clamp: min and max must be numbers, got {limit!r:.60}")
    return limit


def _winner(loses: str) -> tuple[Slope, Slope]:
    """All of the gradient to the input that does not lose, half to each where they are equal.

    Where one is NaN none loses, and both get all of it, as in torch.
    """

    def share(grad: Array, first: Array, second: Array) -> Array:
        losing = map_binary(loses, first, second, dtypes.bool_).cast(grad.dtype)
        tied = map_binary("eq", first, second, dtypes.bool_).cast(grad.dtype)
        half = map_binary("mul", tied, scalar(0.5, grad.dtype))
        share_of_grad = map_binary("sub", scalar(1, grad.dtype), map_binary("add", losing, half))
        return map_binary("mul", grad, share_of_grad)

    def to_input(grad: Array, *, input: Array, other: Array) -> Array:
        return share(grad, input, other)

    def to_other(grad: Array, *, input: Array, other: Array) -> Array:
        return share(grad, other, input)

    return to_input, to_other


def _winner_double_backward(loses: str) -> tuple[Derivative, Derivative]:
    """The same with Tensors: the shares are constants."""

    def share(grad: Tensor, first: Tensor, second: Tensor) -> Tensor:
        first, second = first.detach(), second.detach()
        losing: Tensor = OPS[loses](first, second).to(grad.dtype)
        return grad * (1 - (losing + 0.5 * (first == second).to(grad.dtype)))

    return share, lambda grad, a, b: share(grad, b, a)


_DISTINCT = (sample(distinct((3, 5)), (3, 5)), sample((4, 1), (1, 3)), sample((0,), (1,)))
maximum = binary(
    "maximum",
    "The larger of two; NaN wins.",
    _winner("lt"),
    _winner_double_backward("lt"),
    saves=("input", "other"),
    samples=_DISTINCT,
    text="a < b ? 0 : 1 (1/2 where equal); b < a ? 0 : 1",
)
minimum = binary(
    "minimum",
    "The smaller of two; NaN wins.",
    _winner("gt"),
    _winner_double_backward("gt"),
    saves=("input", "other"),
    samples=_DISTINCT,
    text="a > b ? 0 : 1 (1/2 where equal); b > a ? 0 : 1",
)


@function(
    samples=[
        sample(away_from((3, 5), 0.5), min=0.5),
        sample(away_from((2, 1, 4), -0.5), max=-0.5),
        sample(unit((0, 3)), min=0.0, max=1.0),
        sample((3, 5), (5,), (3, 1)),
        sample((2, 3), none(), (2, 3)),
        sample((2, 1, 4), (4,)),
        sample(index((6,), 9), index((6,), 5), index((1,), 7)),
    ],
    wrong=[
        wrong(sample((2,)), "clip: at least one of min and max is needed"),
        wrong(sample((3,), (2,)), "shapes (3,) and (2,) do not broadcast"),
    ],
)
def clip(
    input: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None
) -> Tensor:
    """The same as clamp."""
    return clamp(input, min=min, max=max)


_FROM = [
    sample(away_from((3, 5), 0.5), min=0.5),
    sample((2, 1, 4), (4,)),
    sample((), ()),
    sample((0, 3), (3,)),
]


@function(samples=_FROM)
def clamp_min(input: Tensor, min: Tensor | float) -> Tensor:
    """The element, or min where that is more."""
    return clamp(input, min=min)


@function(samples=[sample(away_from((3, 5), -0.5), max=-0.5), *_FROM[1:]])
def clamp_max(input: Tensor, max: Tensor | float) -> Tensor:
    """The element, or max where that is less."""
    return clamp(input, max=max)
