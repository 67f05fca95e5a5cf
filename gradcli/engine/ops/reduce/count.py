"""How many elements are true, whether any or all are, and how often each whole number occurs."""

from __future__ import annotations

from gradcli.engine import dtype as dtypes
from gradcli.engine.array import Array, scalar
from gradcli.engine.composite import function
from gradcli.engine.kind import Whole
from gradcli.engine.op import op
from gradcli.engine.ops.creation.creation import full, zeros
from gradcli.engine.ops.elementwise.comparison import ne
from gradcli.engine.ops.elementwise.family import map_binary
from gradcli.engine.ops.index.scatter import scatter_add
from gradcli.engine.ops.reduce.extreme import amax, amin
from gradcli.engine.ops.reduce.sum import Dim, total_over
from gradcli.engine.ops.reduce.sum import sum as total
from gradcli.engine.sample import index, sample, truth, wrong
from gradcli.engine.shape import dim_set, numel, reduced
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, RangeError, ShapeError

COUNTS = "it counts"
GIVES_TRUTH = "it gives truth values"
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
    why=COUNTS,
)
def count_nonzero(input: Tensor, dim: Dim = None) -> Tensor:
    """How many elements are not 0 over `dim`, or over everything."""
    return total(ne(input, 0), dim=dim)


def _answer(input: Array, truth: Array) -> Array:
    """As torch has it: bytes answer in bytes, all others in truth values."""
    return truth.cast(dtypes.uint8) if input.dtype is dtypes.uint8 else truth


def _true(name: str, input: Array, dim: Dim) -> tuple[Array, tuple[int, ...]]:
    """How many elements are not 0, over dims that stay with size 1; and which dims."""
    dims = dim_set(dim, input.ndim, name)
    truths = input if input.dtype is dtypes.bool_ else input.cast(dtypes.bool_)
    return total_over(truths, dims), dims


def _any(input: Array, *, dim: Dim = None, keepdim: bool = False) -> Array:
    """Whether an element over `dim`, or over everything, is not 0."""
    true, dims = _true("any", input, dim)
    return _answer(input, true.cast(dtypes.bool_)).reshape(reduced(input.shape, dims, keepdim))


def _all(input: Array, *, dim: Dim = None, keepdim: bool = False) -> Array:
    """Whether every element over `dim`, or over everything, is not 0."""
    true, dims = _true("all", input, dim)
    every = scalar(numel(tuple([input.shape[d] for d in dims])), dtypes.int64)
    answer = map_binary("eq", true, every, dtypes.bool_)
    return _answer(input, answer).reshape(reduced(input.shape, dims, keepdim))


any_of = op(name="any", samples=_TRUTHS, why=GIVES_TRUTH)(_any)
all_of = op(name="all", samples=_TRUTHS, why=GIVES_TRUTH)(_all)


@function(
    samples=[
        sample(index((6,), 4), (6,)),
        sample(index((7,), 5)),
        sample(index((5,), 3), minlength=6),
        sample(index((1,), 2), index((1,), 9), minlength=1),
        sample(index((0,), 1), minlength=2),
    ],
    wrong=[
        wrong(sample((3,)), "needs whole numbers in 1 dimension"),
        wrong(sample(index((2, 1), 3)), "in 1 dimension, got gradcli.int64 (2, 1)"),
        wrong(sample(truth((3,))), "needs whole numbers in 1 dimension"),
        wrong(sample(index((3,), 3), (2,)), "(2,) weights for (3,) numbers"),
        wrong(sample(index((3,), 0, -2)), "the numbers must be at least 0"),
    ],
)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: Whole = 0) -> Tensor:
    """How often each whole number from 0 on occurs; or the sum of its weights."""
    if input.ndim != 1 or input.dtype.kind != "int":
        raise DTypeError(
            f"bincount: needs whole numbers in 1 dimension, got {input.dtype} {input.shape}"
        )
    if weights is not None and weights.shape != input.shape:
        raise ShapeError(f"bincount: {weights.shape} weights for {input.shape} numbers")
    if input.numel() and amin(input).item() < 0:
        raise RangeError("bincount: the numbers must be at least 0")
    size = max(minlength, int(amax(input).item()) + 1 if input.numel() else 0)
    if weights is None:
        weights = full(input.shape, 1, dtype=dtypes.int64)
    elif weights.dtype is not dtypes.float32:
        weights = weights.to(dtypes.float64)
    return scatter_add(zeros(size, dtype=weights.dtype), 0, input.long(), weights)
