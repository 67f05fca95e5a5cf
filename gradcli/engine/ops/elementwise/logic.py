"""Truth values joined, and bits of whole numbers."""

from __future__ import annotations

from gradcli.engine import dtype as dtypes
from gradcli.engine.array import Array
from gradcli.engine.composite import function
from gradcli.engine.op import Op, declare_op
from gradcli.engine.ops.elementwise.comparison import TRUTH, TRUTH_SAMPLES, eq
from gradcli.engine.ops.elementwise.family import BinaryOp, comparison, map_binary
from gradcli.engine.sample import index, sample, truth
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError

_NO_SLOPE = "whole numbers have no slope"
logical_and = comparison("logical_and", "Both are not 0.")
logical_or = comparison("logical_or", "At least one is not 0.")
logical_xor = comparison("logical_xor", "Exactly one is not 0.")


@function(samples=TRUTH_SAMPLES, why=TRUTH)
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
