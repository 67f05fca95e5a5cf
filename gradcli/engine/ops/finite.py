"""Numbers that must be finite."""

from __future__ import annotations

from gradcli.engine.array import run
from gradcli.engine.function import function
from gradcli.engine.ops.along import floats
from gradcli.engine.tensor import Tensor


@function()
def require_finite(input: Tensor) -> Tensor:
    """The tensor itself; raises NumericsError where an element is NaN or infinite.

    In a captured step it ends the replay there: what comes behind it is not done.
    """
    floats("require_finite", input.array)
    run("require_finite", input.array.contiguous())
    return input
