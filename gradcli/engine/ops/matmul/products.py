"""Products of vectors, matrices and tensors, composed of matmul and broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.engine import shape as shape_rules
from gradcli.engine.composite import function
from gradcli.engine.ops.elementwise.arithmetic import add, mul, sub
from gradcli.engine.ops.index.slices import getitem
from gradcli.engine.ops.matmul.matmul import matmul
from gradcli.engine.ops.shape.join import stack
from gradcli.engine.ops.shape.permute import permute
from gradcli.engine.ops.shape.reshape import reshape
from gradcli.engine.sample import sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError
from gradcli.wording import quantity

_VECTORS = [sample((5,), (5,)), sample((1,), (1,)), sample((0,), (0,))]


def _vectors(name: str, a: Tensor, b: Tensor) -> None:
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(f"{name}: needs two vectors, got shapes {a.shape} and {b.shape}")


Contracted = int | Sequence[int | Sequence[int]]  # how many, or which of a and of b


@function(samples=[sample((3,), (5,)), sample((1,), (4,)), sample((0,), (3,))])
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Each element of one vector times each of another: y[i, j] = a[i] b[j]."""
    _vectors("outer", input, vec2)
    return mul(reshape.ran([input], {"shape": (input.numel(), 1)}), vec2)


@function(samples=_VECTORS)
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The sum of the products of two vectors."""
    _vectors("dot", input, tensor)
    return matmul(input, tensor)


@function(
    samples=_VECTORS,
    wrong=[wrong(sample((2, 3), (3,)), "vdot: needs two vectors, got shapes (2, 3)")],
)
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The sum of the products of two vectors; for real numbers the same as dot."""
    _vectors("vdot", input, other)
    return matmul(input, other)


@function(
    samples=[sample((3, 5), (5,)), sample((4, 1), (1,)), sample((0, 3), (3,)), sample((2, 0), (0,))]
)
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector."""
    if input.ndim != 2 or vec.ndim != 1:
        raise ShapeError(f"mv: needs a matrix and a vector, got {input.shape} and {vec.shape}")
    return matmul(input, vec)


def _scaled_sum(a: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    """The tensor beta a + alpha product; a is not read where beta is 0."""
    scaled = product if alpha == 1 else mul(product, alpha)
    if beta == 0:
        return scaled
    return add(a if beta == 1 else mul(a, beta), scaled)


def _fits(name: str, a: Tensor, product: Tensor) -> None:
    if shape_rules.broadcast(a.shape, product.shape, name) != product.shape:
        raise ShapeError(f"{name}: input {a.shape} does not fit the product {product.shape}")


@function(
    samples=[
        sample((3, 4), (3, 5), (5, 4)),
        sample((2, 1), (2, 0), (0, 1), beta=0.5, alpha=-2),
        sample((4,), (3, 2), (2, 4), alpha=0.5),
        sample((), (2, 3), (3, 1), beta=0),
        sample((1, 3), (0, 2), (2, 3)),
    ],
    wrong=[wrong(sample((3,), (3,), (3, 3)), "addmm: needs two matrices, got (3,) and (3, 3)")],
)
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """The matrix beta input + alpha mat1 @ mat2; the input is broadcast."""
    if mat1.ndim != 2 or mat2.ndim != 2:
        raise ShapeError(f"addmm: needs two matrices, got {mat1.shape} and {mat2.shape}")
    product = matmul(mat1, mat2)
    _fits("addmm", input, product)
    return _scaled_sum(input, product, beta, alpha)


@function(
    samples=[
        sample((2, 3, 4), (2, 3, 5), (2, 5, 4)),
        sample((2, 1, 3), (2, 1, 0), (2, 0, 3), beta=0.5, alpha=-2),
        sample((3, 1), (2, 3, 2), (2, 2, 4), alpha=0.5),
        sample((1,), (1, 2, 3), (1, 3, 2), beta=0),
        sample((4,), (0, 3, 2), (0, 2, 4)),
    ],
    wrong=[
        wrong(sample((3, 1, 1), (2, 1, 4), (2, 4, 1)), "baddbmm: shapes (3, 1, 1) and (2, 1, 1)")
    ],
)
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """The matrices beta input + alpha batch1 @ batch2; the input is broadcast."""
    if batch1.ndim != 3 or batch2.ndim != 3 or batch1.shape[0] != batch2.shape[0]:
        raise ShapeError(
            f"baddbmm: needs two batches of as many matrices, got {batch1.shape} and {batch2.shape}"
        )
    product = matmul(batch1, batch2)
    _fits("baddbmm", input, product)
    return _scaled_sum(input, product, beta, alpha)


@function(
    samples=[
        sample((3, 5), (4, 5)),
        sample((2, 1, 3), (3,)),
        sample((), (2, 3)),
        sample((2, 0), (3, 0)),
        sample((0, 3), (2, 3)),
    ]
)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sums of products along the last dimension of both, for each pair of their rows."""
    if not input.ndim or not other.ndim:
        return mul(input, other)
    return tensordot(input, other, ([-1], [-1]))


@function(
    samples=[
        sample((2, 3, 4), (3, 4, 5)),
        sample((2, 3), (3, 1, 2), dims=1),
        sample((2, 3), (4,), dims=0),
        sample((3, 2, 4), (4, 5, 3), dims=([0, -1], [2, 0])),
        sample((2, 0), (0, 3), dims=1),
    ],
    wrong=[
        wrong(sample((2,), (2,), dims=(0,)), "tensordot: dims must be a number or two lists"),
        wrong(sample((2, 2), (2, 2), dims=([0, -2], [0, 1])), "name one dimension twice"),
    ],
    method=False,
)
def tensordot(a: Tensor, b: Tensor, dims: Contracted = 2) -> Tensor:
    """Sums of products over dims of a and of b: lists of both, or how many of a's last, b's first.

    What is left of a comes first in the result.
    """
    left, right = _contracted(a, b, dims)
    if [a.shape[d] for d in left] != [b.shape[d] for d in right]:
        raise ShapeError(
            f"tensordot: dims {left} of {a.shape} and {right} of {b.shape} differ in size"
        )
    keep_a = [d for d in range(a.ndim) if d not in left]
    keep_b = [d for d in range(b.ndim) if d not in right]
    n = shape_rules.numel(tuple(a.shape[d] for d in left))
    shape_a, shape_b = tuple(a.shape[d] for d in keep_a), tuple(b.shape[d] for d in keep_b)
    rows = reshape(permute(a, [*keep_a, *left]), (shape_rules.numel(shape_a), n))
    columns = reshape(permute(b, [*right, *keep_b]), (n, shape_rules.numel(shape_b)))
    return reshape(matmul(rows, columns), (*shape_a, *shape_b))


def _contracted(a: Tensor, b: Tensor, dims: Contracted) -> tuple[list[int], list[int]]:
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise OptionError(
                f"tensordot: {quantity(dims, 'dim')} of shapes {a.shape} and {b.shape}"
            )
        return list(range(a.ndim - dims, a.ndim)), list(range(dims))
    if not isinstance(dims, (tuple, list)) or len(dims) != 2:
        raise OptionError(f"tensordot: dims must be a number or two lists, got {dims!r}")
    left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
    dims_a = [shape_rules.dim_index(d, a.ndim, "tensordot") for d in left]
    dims_b = [shape_rules.dim_index(d, b.ndim, "tensordot") for d in right]
    if len(set(dims_a)) != len(dims_a) or len(set(dims_b)) != len(dims_b):
        raise OptionError(f"tensordot: dims {dims} name one dimension twice")
    return dims_a, dims_b


@function(
    samples=[
        sample((2, 3), (3, 2)),
        sample((2,), (3, 1, 2)),
        sample((2, 1, 2), (2, 3)),
        sample((), (4,)),
    ]
)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Every element of the input times the whole other tensor, in blocks."""
    ndim = max(input.ndim, other.ndim)
    a = (*(1,) * (ndim - input.ndim), *input.shape)
    b = (*(1,) * (ndim - other.ndim), *other.shape)
    product = mul(reshape(input, (-1, 1)), reshape(other, (1, -1))) if ndim else mul(input, other)
    blocks = reshape(product, (*a, *b))
    pairs = [d for k in range(ndim) for d in (k, ndim + k)]
    merged = tuple(x * y for x, y in zip(a, b, strict=True))
    return reshape(permute(blocks, pairs), merged)


@function(
    samples=[
        sample((4, 3), (4, 3), dim=1),
        sample((2, 3, 3), (2, 3, 3)),
        sample((3, 1), (3, 4), dim=0),
        sample((2, 3), (1, 3), dim=-1),
        sample((3, 0), (3, 0), dim=0),
    ],
    wrong=[wrong(sample((3, 2), (3, 2), dim=1), "needs a dimension of 3, got shape (3, 2), dim 1")],
)
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The vectors at right angles to those of length 3 along `dim`; the first such dim without."""
    if input.ndim != other.ndim:
        raise ShapeError(
            f"cross: input {input.shape} and other {other.shape} must have the same number of "
            "dimensions"
        )
    shape = shape_rules.broadcast(input.shape, other.shape, "cross")
    if dim is None:
        d = next((i for i, size in enumerate(shape) if size == 3), -1)
    else:
        d = shape_rules.dim_index(dim, len(shape), "cross")
    if not shape or d < 0 or shape[d] != 3:
        raise ShapeError(f"cross: needs a dimension of 3, got shape {shape}, dim {dim}")
    a, b = (_along(x.expand(shape), d) for x in (input, other))
    parts = [sub(mul(a[i], b[j]), mul(a[j], b[i])) for i, j in ((1, 2), (2, 0), (0, 1))]
    return stack(parts, d)


def _along(x: Tensor, d: int) -> Sequence[Tensor]:
    """The slices along d."""
    return [getitem(x, index=(*[slice(None)] * d, i)) for i in range(3)]
