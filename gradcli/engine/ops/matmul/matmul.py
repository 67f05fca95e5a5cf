"""Matrix products. The kernel takes any strides, so a transposed view costs no copy."""

from __future__ import annotations

from gradcli.engine import shape as shapes
from gradcli.engine import table
from gradcli.engine.array import Array, multiplied, nothing, result, unbroadcast
from gradcli.engine.composite import function
from gradcli.engine.double_backward import sum_to
from gradcli.engine.op import op
from gradcli.engine.ops.along import floats, match
from gradcli.engine.precision import product_options
from gradcli.engine.sample import none, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import ShapeError
from gradcli.wording import quantity


def _transpose(x: Array) -> Array:
    """A view with the last two dimensions exchanged."""
    return x.permute([*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


def _rows(x: Array) -> Array:
    """All rows of all matrices as one matrix."""
    return x.reshape((shapes.numel(x.shape[:-1]), x.shape[-1]))


def _batch(x: Array, batch: Shape) -> Array:
    """Matrices repeated to `batch`, under one batch dimension."""
    if not batch:
        return x.view((1, *x.shape), (1, *x.strides))
    matrix = x.shape[-2:]
    return x.expand((*batch, *matrix), "matmul").reshape((shapes.numel(batch), *matrix))


def product(a: Array, b: Array, bias: Array | None = None) -> Array:
    """The products of the last two dimensions (of at least two), the others broadcast."""
    options = product_options(a.dtype)
    if len(a.shape) == len(b.shape) == 2 and not options:
        out = multiplied(a, b, bias)
        if out is not None:
            return out
    batch = shapes.broadcast(a.shape[:-2], b.shape[:-2], "matmul")
    start = nothing(a.dtype) if bias is None else bias.contiguous()
    sizes = shapes.numel(batch), a.shape[-2], b.shape[-1]
    operands = _batch(a, batch), _batch(b, batch), start
    out = result("matmul", *operands, shape=sizes, dtype=a.dtype, options=options)
    if not batch:
        return out.view(sizes[1:], out.strides[1:])
    return out.reshape((*batch, *sizes[1:]))


def _check(a: Array, b: Array) -> None:
    floats("matmul", a)
    match("matmul", a, other=b)
    if not a.shape or not b.shape:
        raise ShapeError(f"matmul: both need at least 1 dimension, got {a.shape} and {b.shape}")
    rows = b.shape[max(len(b.shape) - 2, 0)]
    if a.shape[-1] != rows:
        raise ShapeError(
            f"matmul: shapes {a.shape} and {b.shape} do not fit: "
            f"{quantity(a.shape[-1], 'column')} against {quantity(rows, 'row')}"
        )
    shapes.broadcast(a.shape[:-2], b.shape[:-2], "matmul")


def _lift(a: Array, b: Array) -> tuple[Array, Array]:
    """A vector on the left is a row, one on the right a column."""
    return (
        a.reshape((1, *a.shape)) if a.ndim == 1 else a,
        b.reshape((*b.shape, 1)) if b.ndim == 1 else b,
    )


@op(
    saves=("input", "other"),
    samples=[
        sample((3, 5), (5, 4)),
        sample((7, 33), (33, 19)),
        sample((4,), (4,)),
        sample((5,), (5, 3)),
        sample((3, 5), (5,)),
        sample((2, 3, 5), (5, 4)),
        sample((2, 3, 5), (2, 5, 4)),
        sample((3, 5), (2, 5, 4)),
        sample((2, 1, 3, 4), (3, 4, 2)),
        sample((2, 3, 4), (4,)),
        sample((1, 1), (1, 1)),
        sample((0, 3), (3, 4)),
        sample((3, 0), (0, 4)),
        sample((2, 3, 0), (2, 0, 4)),
    ],
    wrong=[
        wrong(sample((3, 5), (4, 5)), "matmul: shapes (3, 5) and (4, 5) do not fit"),
        wrong(sample((2, 3, 5), (3, 5, 4)), "matmul: shapes (2,) and (3,) do not broadcast"),
        wrong(sample((), (3,)), "matmul: both need at least 1 dimension"),
    ],
)
def matmul(input: Array, other: Array) -> Array:
    """The matrix product input @ other of the last two dimensions; the others broadcast."""
    if len(input.shape) < 3 > len(other.shape) and not product_options(input.dtype):
        out = multiplied(input, other)
        if out is not None:
            return out
    _check(input, other)
    a, b = _lift(input, other)
    if b.ndim == 2 and a.ndim > 2:
        out = product(_rows(a), b).reshape((*a.shape[:-1], b.shape[-1]))
    else:
        out = product(a, b)
    shape = out.shape if input.ndim > 1 else (*out.shape[:-2], out.shape[-1])
    return out.reshape(shape if other.ndim > 1 else shape[:-1])


@matmul.gradient
def matmul_gradient(
    grad: Array, *, input: Array, other: Array, needs: tuple[bool, ...]
) -> tuple[Array | None, ...]:
    """(grad @ other^T, input^T @ grad), summed over what broadcasting had repeated."""
    a, b = _lift(input, other)
    if b.ndim == 2:
        a = _rows(a)
    batch = shapes.broadcast(a.shape[:-2], b.shape[:-2], "matmul")
    grad = grad.reshape((*batch, a.shape[-2], b.shape[-1]))
    return (
        unbroadcast(product(grad, _transpose(b)), a.shape).reshape(input.shape)
        if needs[0]
        else None,
        unbroadcast(product(_transpose(a), grad), b.shape).reshape(other.shape)
        if needs[1]
        else None,
    )


@matmul.double_backward
def matmul_double_backward(
    grad: Tensor, *, input: Tensor, other: Tensor, needs: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    """The same products, of rows and columns where vectors were given."""
    a = input.reshape(1, -1) if input.ndim == 1 else input
    b = other.reshape(-1, 1) if other.ndim == 1 else other
    batch = shapes.broadcast(a.shape[:-2], b.shape[:-2], "matmul")
    grad = grad.reshape(*batch, a.shape[-2], b.shape[-1])
    return (
        sum_to(matmul(grad, b.mT), a.shape).reshape(input.shape) if needs[0] else None,
        sum_to(matmul(a.mT, grad), b.shape).reshape(other.shape) if needs[1] else None,
    )


def _decomposed_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    y = table.matmul(input, table.permute(weight, (1, 0)))
    return y if bias is None else table.add(y, bias)


def _check_linear(x: Array, weight: Array, bias: Array | None) -> None:
    floats("linear", x)
    match("linear", x, weight=weight, bias=bias)
    if weight.ndim != 2 or x.ndim == 0 or x.shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"linear: input {x.shape} does not fit weight {weight.shape}: "
            f"expected input (..., in) and weight (out, in)"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ShapeError(
            f"linear: bias {bias.shape} does not fit weight {weight.shape}: "
            f"expected {weight.shape[:1]}"
        )


@op(
    saves=("input", "weight"),
    samples=[
        sample((3, 5), (4, 5), (4,)),
        sample((3, 5), (4, 5), none()),
        sample((5,), (4, 5), (4,)),
        sample((2, 3, 5), (1, 5), (1,)),
        sample((17, 40), (33, 40), (33,)),
        sample((0, 5), (4, 5), (4,)),
        sample((3, 0), (4, 0), (4,)),
    ],
    wrong=[
        wrong(sample((3, 5), (5, 4), (4,)), "linear: input (3, 5) does not fit weight (5, 4)"),
        wrong(sample((3, 5), (4, 5), (5,)), "linear: bias (5,) does not fit weight (4, 5)"),
    ],
    decomposition=_decomposed_linear,
    double_backward="decomposition",
    method=False,
)
def linear(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """The affine map input @ weight^T + bias, for weight (out, in)."""
    _check_linear(input, weight, bias)
    y = product(_rows(input), _transpose(weight), bias)
    return y.reshape((*input.shape[:-1], weight.shape[0]))


@linear.gradient
def linear_gradient(
    grad: Array, *, input: Array, weight: Array, needs: tuple[bool, ...]
) -> tuple[Array | None, ...]:
    """(grad @ weight, grad^T @ input, the sum of grad over the rows)."""
    rows = _rows(grad)
    return (
        product(rows, weight).reshape(input.shape) if needs[0] else None,
        product(_transpose(rows), _rows(input)) if needs[1] else None,
        unbroadcast(rows, weight.shape[:1]) if needs[2] else None,
    )


@function(samples=[sample((3, 5), (5, 2)), sample((4, 1), (1, 3)), sample((2, 0), (0, 3))])
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices, without broadcasting."""
    return _exactly("mm", 2, input, mat2)


@function(
    samples=[
        sample((2, 3, 5), (2, 5, 4)),
        sample((3, 1, 4), (3, 4, 1)),
        sample((0, 2, 3), (0, 3, 4)),
        sample((2, 3, 0), (2, 0, 2)),
    ],
)
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two batches of matrices, without broadcasting."""
    if input.ndim == mat2.ndim == 3 and input.shape[0] != mat2.shape[0]:
        raise ShapeError(f"bmm: the batches of {input.shape} and {mat2.shape} differ")
    return _exactly("bmm", 3, input, mat2)


def _exactly(name: str, ndim: int, a: Tensor, b: Tensor) -> Tensor:
    if a.ndim != ndim or b.ndim != ndim:
        raise ShapeError(
            f"{name}: both need {quantity(ndim, 'dimension')}, got {a.shape} and {b.shape}"
        )
    return table.matmul(a, b)


@function(
    samples=[
        sample((4, 3), (4, 2), (5, 3, 2), (5,)),
        sample((2, 3, 3), (2, 3, 4), (2, 3, 4)),
        sample((1,), (2,), (3, 1, 2), (3,)),
    ],
    method=False,
)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1 weight[k] input2 + bias[k] for each matrix k of weight (out, in1, in2)."""
    if weight.ndim != 3 or (input1.shape[-1:], input2.shape[-1:]) != (
        weight.shape[1:2],
        weight.shape[2:],
    ):
        raise ShapeError(
            f"bilinear: weight must be (out, in1, in2) for inputs that end in in1 and in2, got "
            f"{weight.shape}, {input1.shape} and {input2.shape}"
        )
    if input1.shape[:-1] != input2.shape[:-1]:
        raise ShapeError(f"bilinear: {input1.shape} and {input2.shape} differ before the last")
    out, first, second = weight.shape
    transposed = table.reshape(table.permute(weight, (0, 2, 1)), (out * second, first))
    half = table.reshape(linear(input1, transposed), (*input1.shape[:-1], out, second))
    sums = table.matmul(half, table.unsqueeze(input2, -1))
    y = table.squeeze(sums, -1)
    return y if bias is None else y + bias
