"""Python's operators: each is the op of this table, with a number on either side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.composite import function
from gradcli.engine.op import Op
from gradcli.engine.table import OPS
from gradcli.engine.tensor import Tensor

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
    plain = OPS[name]

    def operator(input: Tensor) -> Any:
        return plain(input)

    _enter(f"__{symbol}__", operator, name, f"The op {name}.")


def _between(symbol: str, name: str) -> None:
    plain = OPS[name]

    def operator(input: Tensor, other: object) -> Any:
        return plain(input, other)

    _enter(f"__{symbol}__", operator, name, f"The op {name}.")


def _reflected(symbol: str, name: str) -> None:
    plain = OPS[name]

    def operator(input: Tensor, other: object) -> Any:
        return plain(other, input)

    _enter(f"__r{symbol}__", operator, name, f"The op {name}, with the tensor on the right.")


def _enter(symbol: str, operator: Callable[..., object], name: str, doc: str) -> None:
    """An operator takes what the op takes."""
    operator.__doc__ = doc
    operator.__dict__["__wrapped__"] = OPS[name]
    function(symbol, label=name)(operator)
    if isinstance(OPS[name], Op):  # which checks its arguments itself
        setattr(Tensor, symbol, operator)


for symbol, name in WITH_ANOTHER.items():
    _between(symbol, name)
    _reflected(symbol, name)
for name in COMPARISONS:
    _between(name, name)
for symbol, name in ALONE.items():
    _alone(symbol, name)
