"""Largest and smallest elements and their indices. NaN wins over every number."""

from __future__ import annotations

from typing import Any, overload

from gradcli.engine import dtype as dtypes
from gradcli.engine import table
from gradcli.engine.array import Array, result, run
from gradcli.engine.composite import function
from gradcli.engine.kind import OneDim
from gradcli.engine.op import Op, declare_op, op
from gradcli.engine.ops.along import along
from gradcli.engine.ops.elementwise.clamp import maximum, minimum
from gradcli.engine.ops.index.scatter import put_back
from gradcli.engine.ops.reduce.sum import SAMPLES, Dim
from gradcli.engine.result import Extreme
from gradcli.engine.sample import distinct, sample, with_numbers, wrong
from gradcli.engine.shape import Shape, dim_set, reduced
from gradcli.engine.tensor import Tensor
from gradcli.errors import ShapeError


def _select(name: str, kernel: str, x: Array, dims: tuple[int, ...]) -> tuple[Array, Array]:
    """Values and int64 indices (counted within what is reduced), both (outer, 1, inner)."""
    lines = along(x.shape, dims)
    values = lines.empty(x.dtype)
    if lines.lines[1] == 0 and values.numel:
        raise ShapeError(f"{name}: there is nothing to choose from in shape {x.shape}")
    indices = result(kernel, lines.fold(x), values, shape=lines.results, dtype=dtypes.int64)
    return values, indices


def largest_of(x: Array, dims: tuple[int, ...]) -> Array:
    """The largest elements over `dims`, which stay with size 1."""
    values, _ = _select("amax", "max_along", x, dims)
    return values.reshape(reduced(x.shape, dims, keepdim=True))


_DISTINCT = with_numbers(distinct, SAMPLES)
_NOTHING = wrong(sample((3, 0), dim=1), "there is nothing to choose from in shape (3, 0)")


def _tie_shares(grad: Tensor, *, x: Tensor, y: Tensor, dim: Dim) -> Tensor:
    """1 / ties where x is y, otherwise 0."""
    dims = dim_set(dim, x.ndim, "amax")
    shape = reduced(x.shape, dims, keepdim=True)
    first = (x.detach() == y.detach().reshape(shape)).to(x.dtype)
    ties = table.sum(first, dims, keepdim=True)
    return grad.reshape(shape) * (first / ties)


def _largest(name: str, kernel: str, doc: str) -> Op[Tensor]:
    def forward(x: Array, *, dim: Dim = (), keepdim: bool = False) -> Array:
        dims = dim_set(dim, x.ndim, name)
        values, _ = _select(name, kernel, x, dims)
        return values.reshape(reduced(x.shape, dims, keepdim))

    forward.__doc__ = (
        f"The {doc} of x over `dim`, or over everything; ties share the gradient evenly."
    )
    new_op = op(name=name, saves=("x", "y"), samples=_DISTINCT, wrong=[_NOTHING])(forward)

    @new_op.gradient
    def gradient(grad: Array, *, x: Array, y: Array, dim: Dim) -> Array:
        """1 / ties where x is y, otherwise 0."""
        lines = along(x.shape, dim_set(dim, x.ndim, name))
        out = lines.whole(x.dtype)
        run("ties_backward", lines.fold(x), lines.fold_result(y), lines.fold_result(grad), out)
        return lines.unfold(out)

    new_op.double_backward(_tie_shares)
    return new_op


amax = _largest("amax", "max_along", "largest")
amin = _largest("amin", "min_along", "smallest")


_LINES = (
    sample(distinct((3, 5)), dim=0),
    sample(distinct((2, 3, 4)), dim=1, keepdim=True),
    sample(distinct((2, 1, 3)), dim=-1),
    sample(distinct((0, 3)), dim=1),
)


def _arg_extreme(name: str, kernel: str, doc: str) -> Op[Tensor]:
    def forward(x: Array, *, dim: int | None = None, keepdim: bool = False) -> Array:
        dims = dim_set(dim, x.ndim, name)
        _, indices = _select(name, kernel, x, dims)
        return indices.reshape(reduced(x.shape, dims, keepdim))

    forward.__doc__ = f"Where the {doc} lies along `dim`, or in the flat x; the first of several."
    return op(
        name=name,
        samples=[sample((3, 5)), *_LINES],
        wrong=[_NOTHING],
        why="an index does not change smoothly",
    )(forward)


argmax = _arg_extreme("argmax", "max_along", "largest")
argmin = _arg_extreme("argmin", "min_along", "smallest")


class ExtremeOp(Op[Tensor]):
    """Torch's three forms: of everything, along one dim with indices, and of two tensors."""

    of_all: Op[Tensor]
    of_two: Op[Tensor]

    @overload
    def __call__(self, x: Tensor) -> Tensor: ...
    @overload
    def __call__(self, x: Tensor, other: Tensor) -> Tensor: ...
    @overload
    def __call__(self, x: Tensor, dim: OneDim, keepdim: bool = False) -> Extreme: ...
    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Largest (smallest) of everything, along `dim`, or of two tensors."""
        second = args[1] if len(args) > 1 else keywords.get("other")
        if isinstance(second, Tensor):
            return self.of_two(*args, **keywords)
        if len(args) + len(keywords) == 1:
            return self.of_all(*args, **keywords)
        return Extreme(*super().__call__(*args, **keywords))


def _extreme(
    name: str, kernel: str, doc: str, of_all: Op[Tensor], of_two: Op[Tensor]
) -> Op[Tensor]:
    def forward(x: Array, *, dim: OneDim, keepdim: bool = False) -> tuple[Array, Array]:
        dims = dim_set(dim, x.ndim, name)
        shape = reduced(x.shape, dims, keepdim)
        values, indices = _select(name, kernel, x, dims)
        return values.reshape(shape), indices.reshape(shape)

    forward.__doc__ = doc
    new_op = ExtremeOp(
        forward,
        name=name,
        outputs=("values", "indices"),
        visible=2,
        saves="indices",
        samples=_LINES,
        wrong=[_NOTHING],
    )
    new_op.of_all, new_op.of_two = of_all, of_two

    @new_op.gradient
    def gradient(
        grads: tuple[Array, ...], *, indices: Array, dim: int, shapes: tuple[Shape, ...]
    ) -> Array:
        """The gradient at the chosen indices, 0 elsewhere."""
        lines = along(shapes[0], dim_set(dim, len(shapes[0]), name))
        out = lines.whole(grads[0].dtype)
        run("select_backward", lines.fold_result(indices), lines.fold_result(grads[0]), out)
        return lines.unfold(out)

    @new_op.double_backward
    def double_backward(
        grads: tuple[Tensor, ...], *, indices: Tensor, dim: int, shapes: tuple[Shape, ...]
    ) -> Tensor:
        """The gradient at the chosen indices, 0 elsewhere."""
        line_shape = reduced(shapes[0], dim_set(dim, len(shapes[0]), name), keepdim=True)
        return put_back(grads[0].reshape(line_shape), indices.reshape(line_shape), shapes[0], dim)

    return declare_op(new_op)


max = _extreme("max", "max_along", "The largest along `dim`, and its index.", amax, maximum)
min = _extreme("min", "min_along", "The smallest along `dim`, and its index.", amin, minimum)


@function(samples=[sample(distinct((3, 5))), sample(()), *_LINES])
def aminmax(
    input: Tensor, *, dim: int | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """The smallest and the largest along `dim`, or of everything."""
    over = () if dim is None else dim
    return amin(input, over, keepdim), amax(input, over, keepdim)
