"""Tensors repeated as a whole or slice by slice: repeat, tile, repeat_interleave; all copies."""

from __future__ import annotations

from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shape_rules
from gradcli.engine.argument import unpack_list
from gradcli.engine.array import empty
from gradcli.engine.composite import function
from gradcli.engine.kind import Sizes
from gradcli.engine.ops.creation.creation import tensor
from gradcli.engine.ops.index.index_select import index_select
from gradcli.engine.ops.shape.expand import expand
from gradcli.engine.ops.shape.reshape import own_memory, ravel, reshape
from gradcli.engine.sample import index, sample, unit, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, ShapeError
from gradcli.wording import quantity


def _repeated(x: Tensor, outer: int, times: int, inner: int, shape: Shape) -> Tensor:
    """Each block of `inner` elements `times` times behind itself, in a new shape."""
    rows = reshape.ran([x], {"shape": (outer, 1, inner)})
    block = expand.ran([rows], {"size": (outer, times, inner)})
    return own_memory(reshape.ran([block], {"shape": shape}), x)  # one number is a view of it


@function(
    samples=[
        sample((2, 3), repeats=(2, 3)),
        sample((3,), repeats=(2, 1, 2)),
        sample((4, 1), repeats=(1, 5)),
        sample((), repeats=(3,)),
        sample((2, 3), repeats=(2, 0)),
    ]
)
def repeat(input: Tensor, *repeats: Sizes) -> Tensor:
    """The whole input as often as told along each dimension; more numbers add dims in front."""
    times = shape_rules.check_shape(unpack_list("repeat", "repeats", repeats), "repeat")
    if len(times) < input.ndim:
        raise OptionError(
            f"repeat: {quantity(len(times), 'number')} for {quantity(input.ndim, 'dimension')}"
        )
    shape = (*(1,) * (len(times) - input.ndim), *input.shape)
    x = input
    for d, count in enumerate(times):
        if count != 1:
            outer, inner = shape_rules.numel(shape[:d]), shape_rules.numel(shape[d:])
            shape = (*shape[:d], shape[d] * count, *shape[d + 1 :])
            x = _repeated(x, outer, count, inner, shape)
    return reshape(input, shape).clone() if x is input else x


@function(
    samples=[
        sample((2, 3), dims=(2, 3)),
        sample((2, 3), dims=(2,)),
        sample((4, 1), dims=(2, 1, 3)),
    ]
)
def tile(input: Tensor, *dims: Sizes) -> Tensor:
    """The whole input as often as told along the last dimensions."""
    times = unpack_list("tile", "dims", dims)
    return repeat(input, *(1,) * (input.ndim - len(times)), *times)


@function(
    samples=[
        sample((2, 3), repeats=2),
        sample((3, 4), repeats=3, dim=1),
        sample((4, 2), index((4,), 3), dim=0),
        sample((3, 1), index((1,), 4), dim=-2),
        sample((2, 1), repeats=3, dim=0, output_size=6),
        sample((0, 3), repeats=2, dim=-1),
    ],
    wrong=[wrong(sample((2,), unit((2,))), "repeats must be whole numbers in at most 1 dimension")],
)
def repeat_interleave(
    input: Tensor, repeats: int | Tensor, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each slice along `dim` so many times in a row; without dim the flat elements."""
    if dim is None or not input.ndim:
        input, dim = ravel(input), dim or 0
    d = shape_rules.dim_index(dim, input.ndim, "repeat_interleave")
    size, shape = input.shape[d], input.shape
    times = _times(repeats, size)
    if isinstance(times, int):
        outer, inner = shape_rules.numel(shape[: d + 1]), shape_rules.numel(shape[d + 1 :])
        out = _repeated(input, outer, times, inner, (*shape[:d], size * times, *shape[d + 1 :]))
    else:
        empty((sum(times),), dtypes.int64)  # refuses at once what no memory holds
        indices = [i for i, count in enumerate(times) for _ in range(count)]
        out = index_select(input, d, tensor(indices, dtype=dtypes.int64))
    if output_size is not None and out.shape[d] != output_size:
        raise OptionError(
            f"repeat_interleave: output_size {output_size} given, but there are {out.shape[d]}"
        )
    return out


def _times(repeats: int | Tensor, size: int) -> int | list[int]:
    """How often all slices are repeated, or each."""
    if not isinstance(repeats, Tensor):
        times: Any = repeats
    elif repeats.dtype not in (dtypes.int64, dtypes.int32) or repeats.ndim > 1:
        raise DTypeError(
            f"repeat_interleave: repeats must be whole numbers in at most 1 dimension, "
            f"got {repeats.dtype} {repeats.shape}"
        )
    else:
        times = repeats.item() if repeats.numel() == 1 else repeats.tolist()
    if isinstance(times, list) and len(times) != size:
        raise ShapeError(f"repeat_interleave: {len(times)} repeats for a dimension of {size}")
    if min(times if isinstance(times, list) else [times], default=0) < 0:
        raise OptionError("repeat_interleave: repeats must not be negative")
    return times  # type: ignore[no-any-return]
