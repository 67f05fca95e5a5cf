"""What is true of elements and of tensors; what is not finite, and how to be rid of it."""

from __future__ import annotations

from math import inf

from gradcli.engine import dtype as dtypes
from gradcli.engine.array import run
from gradcli.engine.composite import function
from gradcli.engine.kind import NotNegative
from gradcli.engine.ops.along import floats
from gradcli.engine.ops.elementwise.arithmetic import absolute, mul, sub
from gradcli.engine.ops.elementwise.family import comparison
from gradcli.engine.ops.index.where import where
from gradcli.engine.sample import index, sample, truth, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError

eq = comparison("eq", "input == other.")
ne = comparison("ne", "input != other.")
lt = comparison("lt", "input < other.")
le = comparison("le", "input <= other.")
gt = comparison("gt", "input > other.")
ge = comparison("ge", "input >= other.")
TRUTH = "the answer is true or false"
TRUTH_SAMPLES = (sample((3, 5)), sample(index((2, 1, 4), 2)), sample(truth((3,))), sample((0, 2)))


@function(samples=TRUTH_SAMPLES, why=TRUTH)
def isnan(input: Tensor) -> Tensor:
    """The element is not a number."""
    return ne(input, input)


@function(samples=TRUTH_SAMPLES, why=TRUTH)
def isinf(input: Tensor) -> Tensor:
    """The element is infinite."""
    return eq(_size(input), inf)


@function(samples=TRUTH_SAMPLES, why=TRUTH)
def isfinite(input: Tensor) -> Tensor:
    """The element is neither infinite nor NaN."""
    return lt(_size(input), inf)


def _size(x: Tensor) -> Tensor:
    return absolute(x.detach()) if x.is_floating_point() else x.float()


_NEAR_SAMPLES = (
    sample((3, 5), (3, 5)),
    sample((2, 1, 3), (4, 1), rtol=0.5, atol=0.25),
    sample(index((2, 5), 3), index((5,), 3), equal_nan=True),
    sample((0, 3), (1, 3), atol=1.0),
)


@function(
    samples=_NEAR_SAMPLES,
    wrong=[wrong(sample((2,), index((2,), 3)), "both must be of one type, got")],
    why=TRUTH,
)
def isclose(
    input: Tensor,
    other: Tensor,
    rtol: NotNegative = 1e-5,
    atol: NotNegative = 1e-8,
    equal_nan: bool = False,
) -> Tensor:
    """|input - other| <= atol + rtol * |other|, or equal."""
    if input.dtype is not other.dtype:
        raise DTypeError(f"isclose: both must be of one type, got {input.dtype}, {other.dtype}")
    same = eq(input, other)
    if equal_nan:
        same = same | (isnan(input) & isnan(other))
    if not input.is_floating_point():
        input, other = input.double(), other.double()
    gap, allowed = absolute(sub(input, other)), mul(absolute(other), rtol) + atol
    near = le(gap, allowed) & isfinite(gap)
    return same | near


@function(samples=_NEAR_SAMPLES, why="gives no tensor")
def allclose(
    input: Tensor,
    other: Tensor,
    rtol: NotNegative = 1e-5,
    atol: NotNegative = 1e-8,
    equal_nan: bool = False,
) -> bool:
    """Whether isclose holds for every element."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@function(
    samples=[
        sample((3, 5), (3, 5)),
        sample(truth((1,)), truth((1,))),
        sample((2, 1), (2, 3)),
    ],
    why="gives no tensor",
)
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape and the same elements."""
    return input.shape == other.shape and bool(eq(input, other).all())


@function(
    samples=[
        sample((3, 5)),
        sample((2, 1, 4), nan=1.0, posinf=2.0, neginf=-3.0),
        sample(index((4,), 9), nan=1.0),
    ],
)
def nan_to_num(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """NaN replaced by `nan` (0), and infinities by the largest and the smallest number."""
    if not input.is_floating_point():
        return input.clone()
    top = dtypes.LARGEST[input.dtype]
    y = input
    for mask, value in (
        (isnan(input), 0.0 if nan is None else nan),
        (eq(input, inf), top if posinf is None else posinf),
        (eq(input, -inf), -top if neginf is None else neginf),
    ):
        y = where(mask, value, y)
    return y


@function(shares="view", samples=[sample((3, 5)), sample((2, 1, 4)), sample(()), sample((0, 3))])
def require_finite(input: Tensor) -> Tensor:
    """The tensor itself; raises NumericsError where an element is NaN or infinite.

    In a captured step it ends the replay there: what comes behind it is not done.
    """
    floats("require_finite", input.array)
    run("require_finite", input.array.contiguous())
    return input
