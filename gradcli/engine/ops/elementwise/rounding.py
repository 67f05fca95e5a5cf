"""Whole numbers near an element, and what is left of it: floor, ceil, trunc, round, frac."""

from __future__ import annotations

from typing import Annotated

from gradcli.engine.array import Array, scalar
from gradcli.engine.kind import within
from gradcli.engine.op import op
from gradcli.engine.ops.along import floats
from gradcli.engine.ops.elementwise.family import (
    UNIT_SAMPLES,
    declare_flat,
    map_binary,
    map_unary,
    piecewise_constant,
)
from gradcli.engine.sample import sample

floor = piecewise_constant("floor", "The largest whole number not above x.", samples=UNIT_SAMPLES)
ceil = piecewise_constant("ceil", "The smallest whole number not below x.", samples=UNIT_SAMPLES)
trunc = piecewise_constant("trunc", "The whole number next to x towards 0.", samples=UNIT_SAMPLES)
Decimals = Annotated[int, within("a whole number from -300 to 300", ge=-300, le=300)]


@op(samples=[*UNIT_SAMPLES, sample((3, 1), decimals=2), sample((2, 3), decimals=-1)])
def round(x: Array, *, decimals: Decimals = 0) -> Array:
    """The nearest whole number, halves to the even one; or with so many decimals."""
    if not x.dtype.is_floating_point:
        return x.copy()
    if not decimals:
        return map_unary("round", x)
    factor = scalar(10.0 ** (decimals if decimals > 0 else -decimals), x.dtype)
    enter, leave = ("mul", "div") if decimals > 0 else ("div", "mul")
    return map_binary(leave, map_unary("round", map_binary(enter, x, factor)), factor)


declare_flat(round)


@op(samples=UNIT_SAMPLES)
def frac(x: Array) -> Array:
    """The element minus trunc of it."""
    return map_unary("frac", floats("frac", x))


frac.gradient(lambda grad: grad)  # 1 for every element
frac.double_backward(lambda grad: grad)
