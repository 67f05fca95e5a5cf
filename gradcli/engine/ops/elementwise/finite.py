"""Numbers that must be finite."""

from __future__ import annotations

from gradcli.engine.array import run
from gradcli.engine.composite import function
from gradcli.engine.ops.along import floats
from gradcli.engine.sample import index, sample, wrong
from gradcli.engine.tensor import Tensor


@function(
    shares="view",
    samples=[sample((3, 5)), sample((2, 1, 4)), sample(()), sample((0, 3))],
    wrong=[wrong(sample(index((3,), 2)), "must be float32, float64 or bfloat16, got int64")],
)
def require_finite(input: Tensor) -> Tensor:
    """The tensor itself; raises NumericsError where an element is NaN or infinite.

    In a captured step it ends the replay there: what comes behind it is not done.
    """
    floats("require_finite", input.array)
    run("require_finite", input.array.contiguous())
    return input
