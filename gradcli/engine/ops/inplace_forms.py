"""The form of an op that writes its result over its first input, for all in one table.

`x.name_(...)` is `x.copy_(x.name(...))`: the memory is the same, its version is counted, and where
a gradient would have to pass through it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

from gradcli.engine.argument import hints_of
from gradcli.engine.composite import FUNCTIONS, IN_PLACE, function
from gradcli.engine.op import Op
from gradcli.engine.ops.inplace import overwrite
from gradcli.engine.sample import Sample
from gradcli.engine.shape import broadcast
from gradcli.engine.table import OPS
from gradcli.engine.tensor import Tensor, refuse_recorded

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
]
PRODUCTS = ["addmm", "baddbmm"]
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


def _keeps_shape(sample: Sample) -> bool:
    """True where the result is as large as the first input."""
    first, *rest = (one.shape for one in sample.inputs)
    return all(broadcast(shape, first, "in place") == first for shape in rest)


def _tried(name: str) -> Sequence[Sample]:
    """The calls of the plain form whose result fits into the input."""
    plain = OPS[name]
    samples = (plain if isinstance(plain, Op) else FUNCTIONS[name]).samples
    same_type = [s for s in samples if "dtype" not in s.options]
    return same_type if name in PLACED else [s for s in same_type if _keeps_shape(s)]


def _enter(name: str, samples: Sequence[Sample]) -> None:
    plain = OPS[name]

    def write(input: Tensor, *args: Any, **named: Any) -> Tensor:
        refuse_recorded(f"{name}_", input, *args, *named.values())
        return overwrite(f"{name}_", input, plain(input, *args, **named))

    declared = plain.hints if isinstance(plain, Op) else hints_of(plain)
    first = next(iter(signature(plain).parameters))
    write.__dict__["__wrapped__"] = plain  # it is called in the same way, but on a Tensor
    write.__dict__["hints"] = {**declared, first: Tensor}
    write.__doc__ = f"The result of `{name}`, written over the input."
    function(f"{name}_", samples=samples, why=IN_PLACE)(write)


for _name in (*ONE, *TWO, *PLACED):
    _enter(_name, _tried(_name))
for _name in PRODUCTS:
    _enter(_name, FUNCTIONS[_name].samples[:2])
