"""The form of an op that writes its result over its first input, for all in one table.

`x.name_(...)` is `x.copy_(x.name(...))`: the memory is the same, its version is counted, and where
a gradient would have to pass through it is refused.
"""

from __future__ import annotations

from typing import Any

from gradcli.engine.op import function
from gradcli.engine.ops.inplace import overwrite
from gradcli.engine.tensor import OPS, Tensor, refuse_recorded

ONE = [
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "clip",
    "cos",
    "cosh",
    "elu",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "frac",
    "leaky_relu",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "bitwise_not",
    "nan_to_num",
    "neg",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "tril",
    "triu",
    "trunc",
    "celu",
    "hardtanh",
    "selu",
    "threshold",
]
TWO = [
    "atan2",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "eq",
    "floor_divide",
    "fmod",
    "ge",
    "gt",
    "hypot",
    "le",
    "lerp",
    "logical_and",
    "logical_or",
    "logical_xor",
    "lt",
    "ne",
    "pow",
    "remainder",
    "addcdiv",
    "addcmul",
    "addmm",
    "baddbmm",
]
PLACED = [
    "cumprod",
    "cumsum",
    "index_add",
    "index_copy",
    "index_fill",
    "masked_fill",
    "masked_scatter",
    "scatter",
    "scatter_add",
    "scatter_reduce",
]


def _enter(name: str) -> None:
    def write(input: Tensor, *args: Any, **named: Any) -> Tensor:
        refuse_recorded(f"{name}_", input, *args, *named.values())
        return overwrite(f"{name}_", input, OPS[name](input, *args, **named))

    write.__doc__ = f"The result of `{name}`, written over the input."
    function(f"{name}_")(write)


for _name in (*ONE, *TWO, *PLACED):
    _enter(_name)
