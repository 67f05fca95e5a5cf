"""Elements chosen by truth: where something is not 0, what a mask selects and replaces."""

from __future__ import annotations

from dataclasses import replace

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shape_rules
from gradcli.engine.array import Array, empty, result
from gradcli.engine.composite import function
from gradcli.engine.kind import Operand
from gradcli.engine.op import Op, declare_op
from gradcli.engine.ops.creation.creation import full
from gradcli.engine.ops.elementwise.arithmetic import mul
from gradcli.engine.ops.elementwise.clamp import clamp
from gradcli.engine.ops.index.index_select import counted, index_select
from gradcli.engine.ops.index.slices import getitem
from gradcli.engine.ops.index.where import where
from gradcli.engine.ops.reduce.scan import cumsum
from gradcli.engine.ops.reduce.sum import total_over
from gradcli.engine.ops.shape.expand import expand
from gradcli.engine.ops.shape.reshape import reshape
from gradcli.engine.sample import index, sample, truth, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, RangeError, ShapeError

_NO_GRADIENT = "a place does not change smoothly"


def _nonzero_indices(x: Array, *, count: int) -> Array:
    """Places (count, ndim) of the elements that are not 0, of which there are `count`."""
    shape = (count, x.ndim)
    if not x.ndim:
        return empty(shape, dtypes.int64)
    return result("nonzero", x.contiguous(), shape=shape, dtype=dtypes.int64)


def _count(x: Array) -> int:
    """How many elements are not 0."""
    truths = x if x.dtype is dtypes.bool_ else x.cast(dtypes.bool_)
    return int(total_over(truths, tuple(range(x.ndim)), keepdim=False).tolist())


nonzero_indices = declare_op(
    Op[Tensor](
        _nonzero_indices,
        name="nonzero_places",
        samples=[
            sample(truth((3, 5)), count=20),
            sample(truth((40, 60)), count=1000),
            sample(truth((2, 1, 4)), count=0),
            sample(truth(()), count=1),
            sample(truth((0, 3)), count=0),
        ],
        why=_NO_GRADIENT,
    ),
    method=False,
)


_NONZERO = [
    sample(index((3, 5), 2)),
    sample(index((2, 3, 4), 3)),
    sample(()),
    sample(truth((4, 1))),
    sample((0, 3)),
]


@function(
    tuple_if=["as_tuple"],
    samples=[*_NONZERO, *(replace(case, options={"as_tuple": True}) for case in _NONZERO)],
    why=_NO_GRADIENT,
)
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """Places of the elements that are not 0, one a row; or of each dimension apart."""
    x = reshape(input, (1,)) if as_tuple and not input.ndim else input
    positions = nonzero_indices(x, count=_count(x.array))
    if not as_tuple:
        return positions
    return tuple(getitem(positions, index=(slice(None), d)) for d in range(x.ndim))


@function(samples=_NONZERO, why=_NO_GRADIENT)
def argwhere(input: Tensor) -> Tensor:
    """Places of the elements that are not 0, one a row."""
    return nonzero_indices(input, count=_count(input.array))


def truths(name: str, mask: Tensor) -> None:
    """Refuse a mask that holds something else."""
    if mask.dtype is not dtypes.bool_:
        raise DTypeError(f"{name}: mask must be bool, got {mask.dtype}")


def true_indices(mask: Tensor) -> Tensor:
    """Where a mask is true, as places in its flat elements."""
    flat = reshape(mask, (mask.numel(),))
    positions = nonzero_indices(flat, count=_count(flat.array))
    return reshape(positions, (positions.shape[0],))


@function(
    samples=[
        sample((3, 5), truth((3, 5))),
        sample((2, 1, 4), truth((3, 1))),
        sample((), truth((3,))),
        sample((0, 3), truth((3,))),
    ],
    wrong=[wrong(sample((2, 3), truth((2,))), "do not broadcast")],
)
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements at which the mask is true, in one dimension; both broadcast."""
    truths("masked_select", mask)
    shape = shape_rules.broadcast(input.shape, mask.shape, "masked_select")
    flat = reshape(expand(input, shape), (shape_rules.numel(shape),))
    return index_select(flat, 0, true_indices(expand(mask, shape)))


@function(
    samples=[
        sample((3, 5), truth((3, 5)), (15,)),
        sample((2, 3, 4), truth((3, 1)), (5, 6)),
        sample((4, 1), truth((1,)), (4, 2)),
        sample((0, 3), truth((3,)), (0,)),
    ],
    wrong=[
        wrong(sample((2,), truth((2,)), index((2,), 3)), "source is gradcli.int64 and input"),
        wrong(sample((2,), truth((2,)), (0, 3)), "source (0, 3) has no elements"),
        wrong(sample((5, 5), truth((5, 5)), (2,)), "more often than source (2,) has elements"),
    ],
)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The input with the elements of source, in their order, where the mask is true."""
    truths("masked_scatter", mask)
    if source.dtype is not input.dtype:
        raise DTypeError(f"masked_scatter: source is {source.dtype} and input {input.dtype}")
    shape = shape_rules.broadcast(input.shape, mask.shape, "masked_scatter")
    if not shape_rules.numel(shape):
        return expand(input, shape).clone()
    flat_mask = reshape(expand(mask, shape), (shape_rules.numel(shape),))
    if not source.numel():
        raise ShapeError(f"masked_scatter: source {source.shape} has no elements")
    numbers = clamp(cumsum(flat_mask, 0) - 1, min=0)
    try:  # where the mask is false a place is named, but what lies there is not taken
        numbers = counted("masked_scatter", mul(numbers, flat_mask), source.numel())
    except RangeError:
        raise ShapeError(
            f"masked_scatter: the mask is true more often than source {source.shape} has elements"
        ) from None
    values = index_select(reshape(source, (source.numel(),)), 0, numbers)
    return where(expand(mask, shape), reshape(values, shape), expand(input, shape))


@function(
    samples=[
        sample((3, 5), truth((3, 5)), value=0.5),
        sample((2, 1, 4), truth((4,)), value=-2),
        sample((2, 3), truth((2, 1)), value=50.0),
        sample((3, 4), truth((3, 4)), ()),
        sample((), truth(()), value=1.5),
        sample((0, 3), truth((3,)), value=0.0),
    ],
    wrong=[wrong(sample((3,), truth((3,)), (1,)), "value must be one number, got shape (1,)")],
)
def masked_fill(input: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """`value` where the mask is true, otherwise the input."""
    truths("masked_fill", mask)
    if not isinstance(value, Tensor):
        value = full((), value, dtype=input.dtype)
    elif value.ndim:
        raise ShapeError(f"masked_fill: value must be one number, got shape {value.shape}")
    return where(mask, value.to(input.dtype), input)
