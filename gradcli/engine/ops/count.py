"""How many elements are true, and whether any or all of them are."""

from __future__ import annotations

from gradcli.engine import dtype as dtypes
from gradcli.engine.function import function
from gradcli.engine.ops.elementwise import eq, gt, ne
from gradcli.engine.ops.reduce import Dim
from gradcli.engine.ops.reduce import sum as total
from gradcli.engine.tensor import Tensor


@function()
def count_nonzero(input: Tensor, dim: Dim = None) -> Tensor:
    """How many elements are not 0 over `dim`, or over everything."""
    count: Tensor = total(ne(input, 0), dim=dim)
    return count


def _answer(input: Tensor, truth: Tensor) -> Tensor:
    """As torch has it: bytes answer in bytes, all others in truth values."""
    return truth.to(dtypes.uint8) if input.dtype is dtypes.uint8 else truth


@function("any")
def any_of(input: Tensor, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Whether an element over `dim`, or over everything, is not 0."""
    return _answer(input, gt(total(ne(input, 0), dim=dim, keepdim=keepdim), 0))


@function("all")
def all_of(input: Tensor, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Whether every element over `dim`, or over everything, is not 0."""
    return _answer(input, eq(total(eq(input, 0), dim=dim, keepdim=keepdim), 0))
