"""How many elements are true, and whether any or all of them are."""

from __future__ import annotations

from gradcli.engine import dtype as dtypes
from gradcli.engine.composite import function
from gradcli.engine.ops.elementwise.elementwise import eq, gt, ne
from gradcli.engine.ops.reduce.reduce import Dim
from gradcli.engine.ops.reduce.reduce import sum as total
from gradcli.engine.sample import index, sample, truth
from gradcli.engine.tensor import Tensor

COUNTED = "it counts"
ANSWERED = "it gives truth values"
_OVER_ALL = [sample((3, 5)), sample(index((4,), 2)), sample(()), sample((0, 3))]
_TRUTHS = [
    *_OVER_ALL,
    sample(truth((2, 1, 3)), dim=-1),
    sample(truth((0, 4)), dim=0),
    sample(index((4, 3, 2), 2), dim=(0, 2), keepdim=True),
]


@function(
    samples=[
        *_OVER_ALL,
        sample(truth((2, 1, 3)), dim=1),
        sample(index((4, 3, 2), 2), dim=(0, -1)),
        sample((0, 3), dim=0),
    ],
    why=COUNTED,
)
def count_nonzero(input: Tensor, dim: Dim = None) -> Tensor:
    """How many elements are not 0 over `dim`, or over everything."""
    count: Tensor = total(ne(input, 0), dim=dim)
    return count


def _answer(input: Tensor, truth: Tensor) -> Tensor:
    """As torch has it: bytes answer in bytes, all others in truth values."""
    return truth.to(dtypes.uint8) if input.dtype is dtypes.uint8 else truth


@function("any", samples=_TRUTHS, why=ANSWERED)
def any_of(input: Tensor, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Whether an element over `dim`, or over everything, is not 0."""
    return _answer(input, gt(total(ne(input, 0), dim=dim, keepdim=keepdim), 0))


@function("all", samples=_TRUTHS, why=ANSWERED)
def all_of(input: Tensor, dim: Dim = None, keepdim: bool = False) -> Tensor:
    """Whether every element over `dim`, or over everything, is not 0."""
    return _answer(input, eq(total(eq(input, 0), dim=dim, keepdim=keepdim), 0))
