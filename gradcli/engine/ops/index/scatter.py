"""Elements picked and put along a dimension, each by an index of its own: gather and scatter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, overload

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shape_rules
from gradcli.engine import table
from gradcli.engine.array import Array, copy_into, empty, full, run
from gradcli.engine.composite import function
from gradcli.engine.kind import Number, Operand
from gradcli.engine.op import declare_op
from gradcli.engine.ops.along import along
from gradcli.engine.ops.creation.creation import full as full_tensor
from gradcli.engine.ops.elementwise.family import map_binary
from gradcli.engine.ops.index.index_select import ADD, SET, result_as, whole_indices
from gradcli.engine.ops.order import OptionSecond
from gradcli.engine.ops.shape.expand import expand
from gradcli.engine.ops.shape.reshape import reshape
from gradcli.engine.sample import index as below
from gradcli.engine.sample import sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, RangeError, ShapeError


def _fitting(name: str, x: Shape, index: Array, dim: int, source: Shape | None = None) -> int:
    """`dim` from the front, once the index lies inside x but along it, and inside the source."""
    if max(len(x), 1) != max(index.ndim, 1):
        raise ShapeError(f"{name}: index {index.shape} has not as many dimensions as input {x}")
    d = shape_rules.dim_index(dim, len(x), name)
    sizes = list(zip(index.shape, x, strict=False))
    if any(m > n for k, (m, n) in enumerate(sizes) if k != d):
        raise ShapeError(f"{name}: index {index.shape} is larger than input {x} outside dim {d}")
    if source is not None and (
        max(len(source), 1) != max(index.ndim, 1)
        or any(m > n for m, n in zip(index.shape, source, strict=False))
    ):
        raise ShapeError(f"{name}: index {index.shape} is larger than src {source}")
    return d


def corner(x: Array, shape: Shape) -> Array:
    """The view of the first elements of each dimension."""
    return x.view(shape, x.strides) if x.ndim == len(shape) else x.reshape(shape)


def _region(x: Shape, index: Shape, d: int) -> Shape:
    """The part of x that an index along d can reach."""
    if not x or not index:  # a tensor without dimensions is one of one element
        return x
    return tuple(n if k == d else m for k, (n, m) in enumerate(zip(x, index, strict=True)))


def _lines(shape: Shape, d: int) -> tuple[int, int, int]:
    return along(shape or (1,), (d,)).lines


def gathered(x: Array, index: Array, d: int, name: str = "gather") -> Array:
    """The elements of x along d that index names, in the index's shape."""
    region = _region(x.shape, index.shape, d)
    lines = _lines(index.shape, d)
    indices = whole_indices(name, index).reshape(lines)
    source = (x if region == x.shape else corner(x, region)).contiguous()
    inputs = source.reshape(_lines(region, d)), indices
    return result_as(name, "gather", *inputs, shape=lines, dtype=x.dtype).reshape(index.shape)


def put_along(x: Array, index: Array, source: Array, d: int, way: int, name: str) -> Array:
    """A copy of x with the elements of source put where index says, one after another."""
    indices = whole_indices(name, index)
    region = _region(x.shape, index.shape, d)
    if index.numel and not shape_rules.numel(region):
        raise RangeError(f"{name}: dim {d} of input {x.shape} has no place to put to")
    lines, many = _lines(region, d), _lines(index.shape, d)
    if source.shape != index.shape:
        source = corner(source, index.shape)
    whole = region == x.shape
    before = (x if whole else corner(x, region)).contiguous().reshape(lines)
    inputs = before, indices.reshape(many), source.contiguous().reshape(many)
    out = result_as(name, "scatter", *inputs, shape=lines, dtype=x.dtype, sizes=(way,))
    if whole:
        return out.reshape(x.shape)
    joined = x.copy()
    copy_into(corner(joined, region), out.reshape(region))
    return joined


def _spread(grad: Array, index: Array, shape: Shape, d: int) -> Array:
    """Zeros with the gradients of gathered elements added where they came from."""
    return put_along(full(shape, 0, grad.dtype), index, grad, d, ADD, "gather")


def _gather(x: Array, index: Array, *, dim: int) -> Array:
    """x[..., index[..., j, ...], ...]: along `dim` the element that index names, in its shape."""
    return gathered(x, index, _fitting("gather", x.shape, index, dim))


gather = OptionSecond(
    _gather,
    name="gather",
    saves="index",
    double_backward="linear",
    samples=[
        sample((5, 3), below((4, 3), 5), dim=0),
        sample((2, 3, 4), below((2, 7, 3), 3), dim=1),
        sample((4, 1), below((3, 2), 1), dim=-1),
        sample((4,), below((600,), 4), dim=0),
        sample((), below((), 1), dim=0),
        sample((0, 3), below((0, 2), 3), dim=1),
        sample((3, 2), below((0, 2), 3), dim=0),
    ],
    wrong=[
        wrong(sample((3, 2), below((3,), 2), dim=0), "has not as many dimensions as input (3, 2)"),
        wrong(sample((3, 2), below((3, 3), 2), dim=0), "is larger than input (3, 2) outside dim 0"),
    ],
)
declare_op(gather)


@gather.gradient
def gather_gradient(
    grad: Array, *, index: Array, shapes: tuple[Shape, Shape], dim: int
) -> tuple[Array, None]:
    """Every element gets the sum over its copies, in the order of their positions."""
    d = shape_rules.dim_index(dim, len(shapes[0]), "gather")
    return _spread(grad, index, shapes[0], d), None


# -- scatter -------------------------------------------------------------------------------------


def checked(name: str, x: Array, index: Array, src: Array, dim: int) -> int:
    """`dim` from the front, once everything fits."""
    if src.dtype is not x.dtype:
        raise DTypeError(f"{name}: src is {src.dtype} and input {x.dtype}; both must be the same")
    return _fitting(name, x.shape, index, dim, src.shape)


def _last(index: Array, d: int, shape: Shape, name: str) -> Array:
    """True where an element is the last that is put into its place: only that one stays."""
    numbers = empty(index.shape, dtypes.int64)
    run("arange", numbers, sizes=(0, 1))
    stays = put_along(full(shape, 0, dtypes.int64), index, numbers, d, SET, name)
    return map_binary("eq", gathered(stays, index, d, name), numbers, dtypes.bool_)


def masked(grad: Array, mask: Array) -> Array:
    """The gradient where the mask is true, otherwise 0."""
    out = empty(grad.shape, grad.dtype)
    nothing = full((), 0, grad.dtype).expand(grad.shape)
    run("where", mask.expand(grad.shape), grad, nothing, out)
    return out


def set_into(part: Array, shape: Shape) -> Array:
    """Zeros in a larger shape behind it."""
    if part.shape == shape:
        return part
    whole = full(shape, 0, part.dtype)
    copy_into(corner(whole, part.shape), part)
    return whole


class _Scatter(OptionSecond):
    """Also takes a number in place of src, or as `value`, and torch's old `reduce`."""

    @cached_property
    def hints(self) -> dict[str, Any]:
        """What each argument may be, as an annotation."""
        return {"x": Tensor, "dim": int, "index": Tensor, "src": Operand}

    @overload
    def __call__(
        self, x: Tensor, dim: int, index: Tensor, src: Operand, *, reduce: str | None = None
    ) -> Tensor: ...
    @overload
    def __call__(
        self, x: Tensor, dim: int, index: Tensor, *, value: Number, reduce: str | None = None
    ) -> Tensor: ...
    def __call__(self, *args: Any, reduce: str | None = None, **keywords: Any) -> Tensor:
        """Put src, or one value; `reduce` is "add" or "multiply"."""
        if reduce is None:
            return super().__call__(*args, **keywords)
        if reduce not in ("add", "multiply"):
            raise OptionError(f"scatter: reduce must be 'add' or 'multiply', got {reduce!r:.60}")
        (x, index, src), options = self._bind(args, keywords)
        assert x is not None and index is not None and src is not None
        ways = {"add": "sum", "multiply": "prod"}
        return table.scatter_reduce(x, index, src, **options, reduce=ways[reduce])

    def _bind(
        self, args: Sequence[Any], keywords: dict[str, Any]
    ) -> tuple[list[Tensor | None], dict[str, Any]]:
        if "value" in keywords:
            keywords = {**keywords, "src": keywords["value"]}
            del keywords["value"]
        args = list(args)
        x = args[0] if args else keywords.get("input")
        index = next((a for a in args[1:] if isinstance(a, Tensor)), keywords.get("index"))
        if isinstance(x, Tensor) and isinstance(index, Tensor):
            if isinstance(keywords.get("src"), (bool, int, float)):
                src = full_tensor(index.shape, keywords["src"], dtype=x.dtype)
                keywords = {**keywords, "src": src}
            if len(args) > 2 and isinstance(args[-1], (bool, int, float)):
                args[-1] = full_tensor(index.shape, args[-1], dtype=x.dtype)
        return super()._bind(args, keywords)


def _scatter(x: Array, index: Array, src: Array, *, dim: int) -> Array:
    """The input with src put at index along `dim`; of several in one place the last stays."""
    return put_along(x, index, src, checked("scatter", x, index, src, dim), SET, "scatter")


_PUTS = [
    sample((5, 3), below((4, 3), 5), (4, 3), dim=0),
    sample((2, 3, 4), below((2, 7, 3), 3), (3, 7, 4), dim=1),
    sample((4, 1), below((3, 1), 1), (3, 1), dim=-1),
    sample((3, 300), below((3, 5), 300), (3, 5), dim=1),
    sample((), below((), 1), (), dim=0),
    sample((0, 3), below((0, 2), 3), (0, 2), dim=1),
    sample((3, 2), below((0, 2), 3), (0, 2), dim=0),
]


_WRONG_PUTS = [
    wrong(sample((3, 2), below((3,), 2), (3,), dim=0), "has not as many dimensions"),
    wrong(sample((3, 2), below((3, 2), 2), (2, 2), dim=0), "is larger than src (2, 2)"),
    wrong(sample((0, 2), below((1, 2), 2), (1, 2), dim=0), "has no place to put to"),
]
scatter = _Scatter(
    _scatter,
    name="scatter",
    saves="index",
    double_backward="linear",
    samples=_PUTS,
    wrong=_WRONG_PUTS,
)
declare_op(scatter)


@scatter.gradient
def scatter_gradient(
    grad: Array, *, index: Array, shapes: tuple[Shape, ...], needs: tuple[bool, ...], dim: int
) -> tuple[Array | None, ...]:
    """To src what it put and what stayed; to x the rest."""
    d = shape_rules.dim_index(dim, len(shapes[0]), "scatter")
    to_x = to_src = None
    if needs[0]:
        nothing = full(index.shape, 0, grad.dtype)
        to_x = put_along(grad, index, nothing, d, SET, "scatter")
    if needs[2]:
        stayed = _last(index, d, shapes[0], "scatter")
        to_src = set_into(masked(gathered(grad, index, d), stayed), shapes[2])
    return to_x, None, to_src


def _scatter_add(x: Array, index: Array, src: Array, *, dim: int) -> Array:
    """The input with src added at index along `dim`, one after another."""
    d = checked("scatter_add", x, index, src, dim)
    if x.dtype is dtypes.bool_:
        raise DTypeError("scatter_add: truths cannot be added; use x.long()")
    return put_along(x, index, src, d, ADD, "scatter_add")


scatter_add = OptionSecond(
    _scatter_add,
    name="scatter_add",
    saves="index",
    double_backward="linear",
    samples=_PUTS,
    wrong=_WRONG_PUTS,
)
declare_op(scatter_add)


def put_back(grad: Tensor, indices: Tensor, shape: Shape, dim: int) -> Tensor:
    """Zeros of this shape, with a gradient added at the places along `dim` it came from."""
    return scatter_add(full_tensor(shape, 0, dtype=grad.dtype), dim, indices, grad)


@scatter_add.gradient
def scatter_add_gradient(
    grad: Array, *, index: Array, shapes: tuple[Shape, ...], needs: tuple[bool, ...], dim: int
) -> tuple[Array | None, ...]:
    """Unchanged to x; to src what gather picks."""
    d = shape_rules.dim_index(dim, len(shapes[0]), "scatter_add")
    to_src = set_into(gathered(grad, index, d), shapes[2]) if needs[2] else None
    return grad, None, to_src


@function(
    samples=[
        sample((3, 4), below((3, 2), 4), dim=1),
        sample((2, 1, 4), below((1, 3, 2), 4), dim=-1),
        sample((4, 3), below((7, 1), 4), dim=0),
        sample((2, 3), below((5,), 6)),
    ],
    wrong=[
        wrong(sample((3, 4), below((2,), 3), dim=0), "(2,) must have as many dimensions"),
        wrong(sample((3, 4), below((2, 2), 4), dim=1), "take_along_dim: shapes (3, 1) and (2, 1)"),
    ],
)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Gather, with input and indices broadcast against each other outside `dim`; flat without."""
    if dim is None:
        return gather(reshape(input, (input.numel(),)), 0, reshape(indices, (indices.numel(),)))
    if input.ndim != indices.ndim:
        raise ShapeError(
            f"take_along_dim: input {input.shape} and indices {indices.shape} must have as many "
            "dimensions"
        )
    d = shape_rules.dim_index(dim, input.ndim, "take_along_dim")
    if input.shape == indices.shape:
        return gather(input, d, indices)

    def with_size(shape: Shape, size: int) -> Shape:
        return (*shape[:d], size, *shape[d + 1 :])

    shape = shape_rules.broadcast(
        with_size(input.shape, 1), with_size(indices.shape, 1), "take_along_dim"
    )
    x = expand(input, with_size(shape, input.shape[d]))
    return gather(x, d, expand(indices, with_size(shape, indices.shape[d])))
