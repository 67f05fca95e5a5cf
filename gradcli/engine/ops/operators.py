"""Python's operators: each is the op of this table, with a number on either side."""

from __future__ import annotations

from typing import Any

from gradcli.engine.composite import function
from gradcli.engine.tensor import OPS, Tensor

WITH_ANOTHER = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
COMPARISONS = ("lt", "le", "gt", "ge")  # eq and ne take anything: Tensor has them itself
ALONE = {"neg": "neg", "pos": "positive", "abs": "abs", "invert": "bitwise_not"}


def _alone(symbol: str, name: str) -> None:
    def operator(input: Tensor) -> Tensor:
        y: Tensor = OPS[name](input)
        return y

    operator.__doc__ = f"The op {name}."
    function(f"__{symbol}__", called=name)(operator)


def _between(symbol: str, name: str) -> None:
    def operator(input: Tensor, other: Any) -> Tensor:
        y: Tensor = OPS[name](input, other)
        return y

    operator.__doc__ = f"The op {name}."
    function(f"__{symbol}__", called=name)(operator)


def _reflected(symbol: str, name: str) -> None:
    def operator(input: Tensor, other: Any) -> Tensor:
        y: Tensor = OPS[name](other, input)
        return y

    operator.__doc__ = f"The op {name}, with the tensor on the right."
    function(f"__r{symbol}__", called=name)(operator)


for symbol, name in WITH_ANOTHER.items():
    _between(symbol, name)
    _reflected(symbol, name)
for name in COMPARISONS:
    _between(name, name)
for symbol, name in ALONE.items():
    _alone(symbol, name)
