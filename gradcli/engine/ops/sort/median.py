"""The element in the middle, or at another rank in the order."""

from __future__ import annotations

from math import inf, nan

from gradcli.engine import shape as shape_rules
from gradcli.engine import shape as shapes
from gradcli.engine import table
from gradcli.engine.composite import function
from gradcli.engine.result import Sorted
from gradcli.engine.sample import distinct, sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import RangeError, ShapeError

_MEDIANS = [
    sample(distinct((3, 5))),
    sample(distinct((2, 4)), dim=1),
    sample(distinct((2, 4, 3)), dim=-2, keepdim=True),
    sample(distinct((1, 6))),
    sample((), dim=0),
    sample((0, 3)),
    sample((0, 3), dim=1),
]


def _median(name: str, input: Tensor, dim: int, keepdim: bool, ignore_nan: bool) -> Sorted:
    """The lower of the two in the middle, and its index; a NaN wins unless it is to be ignored."""
    d = shapes.dim_index(dim, input.ndim, name)
    if not input.ndim:
        return Sorted(*table.sort(input))
    size = input.shape[d]
    if not size:
        raise ShapeError(f"{name}: dimension {d} of {input.shape} has no elements")
    order = table.sort(input, dim=d)
    counts = table.sum(table.eq(input, input), d, keepdim=True)
    middle = table.clamp(counts - 1, min=0) // 2
    if not ignore_nan:  # NaN lie behind all numbers: the first of them
        middle = table.where(table.le(size, counts), middle, counts)
    middles = [table.gather(part, d, middle) for part in order]
    shape = shapes.reduced(input.shape, (d,), keepdim)
    return Sorted(*(table.reshape(part, shape) for part in middles))


def _median_of_all(name: str, input: Tensor, ignore_nan: bool) -> Tensor:
    """Equal elements share the gradient; of no elements it is NaN."""
    flat = table.reshape(input, (input.numel(),))
    if not input.numel() and input.is_floating_point():
        return table.sum(flat) + nan
    result = _median(name, flat.detach(), 0, False, ignore_nan).values
    if not input.is_floating_point():
        return result
    middle = table.eq(flat, result) | (table.ne(flat, flat) & table.ne(result, result))
    return table.amax(table.where(middle, flat, -inf))


@function(samples=_MEDIANS, tuple_if=["dim"])
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | Sorted:
    """The lower of the two elements in the middle of all; or along `dim`, and its index."""
    if dim is None:
        return _median_of_all("median", input, False)
    return _median("median", input, dim, keepdim, False)


@function(
    tuple_if=["dim"],
    samples=_MEDIANS,
    wrong=[wrong(sample((0, 3), dim=0), "nanmedian: dimension 0 of (0, 3) has no elements")],
)
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | Sorted:
    """The median of what is not NaN; or along `dim`, and its index."""
    if dim is None:
        return _median_of_all("nanmedian", input, True)
    return _median("nanmedian", input, dim, keepdim, True)


@function(
    samples=[
        sample(distinct((3, 5)), k=2),
        sample(distinct((4, 3)), k=4, dim=0),
        sample(distinct((2, 5, 1)), k=3, dim=-2, keepdim=True),
        sample((), k=1),
    ]
)
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th smallest along `dim`, counted from 1, and its index."""
    d = shape_rules.dim_index(dim, input.ndim, "kthvalue")
    size = input.shape[d] if input.ndim else 1
    if not 1 <= k <= size:
        raise RangeError(f"kthvalue: k {k} is outside 1..{size}")
    if not input.ndim:
        return Sorted(*table.sort(input))
    result = table.topk(input, k, d, False) if k < size else table.sort(input, dim=d)
    if keepdim:
        return Sorted(*(table.narrow(part, d, k - 1, 1) for part in result))
    return Sorted(*(table.select(part, d, k - 1) for part in result))
