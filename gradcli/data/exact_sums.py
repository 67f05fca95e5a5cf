"""Sums that are exact before they are rounded once, as those of `math.fsum`, at the speed of C."""

from __future__ import annotations

from gradcli import engine
from gradcli.engine import Tensor
from gradcli.engine.array import empty, run


def exact_sum(
    values: Tensor, marks: Tensor | None = None, shift: float = 0.0, power: float = 1.0
) -> float:
    """The sum of (x - shift) ** power over the numbers whose byte in `marks` is not 0.

    The order of the numbers does not matter. NaN if one of those is, or infinities of both signs.
    """
    numbers = values.contiguous().reshape(-1).array
    bits = engine.zeros(0, dtype=engine.uint8) if marks is None else marks.contiguous()
    total = empty((1,), engine.float64)
    run("exact_sum", numbers, bits.reshape(-1).array, total, options=(shift, power))
    result: float = total.tolist()[0]
    return result
