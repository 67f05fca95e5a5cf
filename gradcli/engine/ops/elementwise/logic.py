"""Truth: what is true of elements, and of tensors; bits of whole numbers."""

from __future__ import annotations

from math import inf

from gradcli.engine import dtype as dtypes
from gradcli.engine.array import Array
from gradcli.engine.composite import function
from gradcli.engine.kind import NotNegative
from gradcli.engine.op import Op, declare_op
from gradcli.engine.ops.elementwise.elementwise import absolute, eq, le, lt, mul, ne, sub
from gradcli.engine.ops.family import BinaryOp, comparison, map_binary
from gradcli.engine.ops.index.where import where
from gradcli.engine.sample import index, sample, truth, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError

_NO_SLOPE = "whole numbers have no slope"
_TRUTH = "the answer is true or false"
_ONE_BOOL = (sample((3, 5)), sample(index((2, 1, 4), 2)), sample(truth((3,))), sample((0, 2)))

logical_and = comparison("logical_and", "Both are not 0.")
logical_or = comparison("logical_or", "At least one is not 0.")
logical_xor = comparison("logical_xor", "Exactly one is not 0.")


@function(samples=_ONE_BOOL, why=_TRUTH)
def logical_not(input: Tensor) -> Tensor:
    """The element is 0."""
    return eq(input, False)


_WHOLE_SAMPLES = (
    sample(index((3, 5), 100), index((3, 5), 100)),
    sample(truth((3, 1)), truth((1, 4))),
    sample(index((2, 1, 3), 9), index((), 9)),
    sample(index((0, 3), 9), index((1, 3), 9)),
)


def _bitwise(name: str, doc: str) -> Op[Tensor]:
    def forward(input: Array, other: Array) -> Array:
        if input.dtype.is_floating_point:
            raise DTypeError(f"{name}: takes whole numbers or truth values, got {input.dtype}")
        return map_binary(name, input, other)

    forward.__doc__ = doc
    return declare_op(
        BinaryOp(
            forward,
            name=name,
            samples=_WHOLE_SAMPLES,
            wrong=(wrong(sample((2,), (2,)), "takes whole numbers or truth values, got"),),
            why=_NO_SLOPE,
        )
    )


bitwise_and = _bitwise("bitwise_and", "Bits that both have; of truth values whether both are true.")
bitwise_or = _bitwise("bitwise_or", "Bits that one has; of truth values whether one is true.")
bitwise_xor = _bitwise("bitwise_xor", "Bits that differ; of truth values whether they differ.")


@function(
    samples=[
        sample(index((3, 5), 100, -100)),
        sample(truth((2, 1, 4))),
        sample(index((), 9)),
        sample(truth((0, 3))),
    ],
    why=_NO_SLOPE,
)
def bitwise_not(input: Tensor) -> Tensor:
    """All bits turned round; of truth values whether they are false."""
    return bitwise_xor(input, True if input.dtype is dtypes.bool_ else -1)


@function(samples=_ONE_BOOL, why=_TRUTH)
def isnan(input: Tensor) -> Tensor:
    """The element is not a number."""
    return ne(input, input)


@function(samples=_ONE_BOOL, why=_TRUTH)
def isinf(input: Tensor) -> Tensor:
    """The element is infinite."""
    return eq(_size(input), inf)


@function(samples=_ONE_BOOL, why=_TRUTH)
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
    why=_TRUTH,
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
        sample((0, 3), (0, 3)),
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
        sample((0, 3)),
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
    for found, value in (
        (isnan(input), 0.0 if nan is None else nan),
        (eq(input, inf), top if posinf is None else posinf),
        (eq(input, -inf), -top if neginf is None else neginf),
    ):
        y = where(found, value, y)
    return y
