"""Products. Floats are multiplied in double, whole numbers and bools in int64."""

from __future__ import annotations

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shapes
from gradcli.engine import table
from gradcli.engine.array import Array, result
from gradcli.engine.dtype import DType
from gradcli.engine.op import op
from gradcli.engine.ops.along import along
from gradcli.engine.ops.index.slices import part_along
from gradcli.engine.ops.shape.reshape import own_memory
from gradcli.engine.sample import index, sample
from gradcli.engine.shape import contiguous_strides
from gradcli.engine.tensor import Tensor


def _decomposition(
    input: Tensor, *, dim: int | None = None, keepdim: bool = False, dtype: DType | None = None
) -> Tensor:
    """Halves are multiplied pair by pair."""
    dims = shapes.dim_set(dim, input.ndim, "prod")
    shape = shapes.reduced(input.shape, dims, keepdim)
    element_type = dtypes.int64 if dtype is None and not input.is_floating_point() else dtype
    x = input if element_type is None else input.to(element_type)
    d = 0 if dim is None or not dims else dims[0]
    x = table.reshape(x, (x.numel(),)) if dim is None or not dims else x
    size = x.shape[d]
    if not size:
        return table.reshape(table.add(table.sum(x, d), 1), shape)
    while size > 1:
        half = size // 2
        y = table.mul(part_along(x, d, slice(half)), part_along(x, d, slice(half, 2 * half)))
        x = table.cat([y, part_along(x, d, slice(2 * half, size))], d) if size % 2 else y
        size = x.shape[d]
    return own_memory(table.reshape(x, shape), input)  # the product of one number is that number


@op(
    saves="input",
    decomposition=_decomposition,
    double_backward="decomposition",
    samples=[
        sample((3, 5)),
        sample((2, 7, 3), dim=1),
        sample((3, 1), dim=-1, keepdim=True),
        sample((4,), dtype=dtypes.float64),
        sample(index((2, 3), 5), dim=0),
        sample((2, 19), dim=1),
        sample((0, 3), dim=0),
    ],
)
def prod(
    input: Array, *, dim: int | None = None, keepdim: bool = False, dtype: DType | None = None
) -> Array:
    """Product along `dim`, or of everything; 1 for nothing."""
    dims = shapes.dim_set(dim, input.ndim, "prod")
    x = input if dtype is None or dtype is input.dtype else input.cast(dtype)
    between = x.dtype if x.dtype.is_floating_point else dtypes.int64
    lines, shape = along(x.shape, dims), shapes.reduced(x.shape, dims, keepdim)
    y = result("prod", lines.fold(x), shape=lines.results, dtype=between)
    y = y if dtype is None or dtype is between else y.cast(dtype)
    return y.view(shape, contiguous_strides(shape))


@prod.gradient
def prod_gradient(grad: Array, *, input: Array, dim: int | None) -> Array:
    """The product of all others; no division, so 0 and infinity may be there."""
    x = input if input.dtype is grad.dtype else input.cast(grad.dtype)
    lines = along(x.shape, shapes.dim_set(dim, x.ndim, "prod"))
    factors, rest = lines.fold(x), lines.fold_result(grad)
    slope = lines.unfold(
        result("prod_backward", factors, rest, shape=lines.lines, dtype=grad.dtype)
    )
    return slope if slope.dtype is input.dtype else slope.cast(input.dtype)
