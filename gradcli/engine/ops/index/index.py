"""Ops that pick and mask elements: rows by index, where, triangles."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from inspect import Signature
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shape_rules
from gradcli.engine.array import Array, empty, run, scalar, unbroadcast
from gradcli.engine.composite import function
from gradcli.engine.kind import Operand
from gradcli.engine.op import Op, declare_op, op
from gradcli.engine.ops.creation.creation import full, tensor
from gradcli.engine.ops.family import matched
from gradcli.engine.sample import index as below
from gradcli.engine.sample import sample, truth, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import OPS, Tensor
from gradcli.engine.twice import sum_to
from gradcli.errors import DTypeError, OptionError, RangeError, ShapeError


def whole_indices(name: str, index: Array) -> Array:
    """Indices as the kernels take them: contiguous int64."""
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise DTypeError(f"{name}: indices must be int64 or int32, got {index.dtype}")
    whole = index if index.dtype is dtypes.int64 else index.cast(dtypes.int64)
    return whole.contiguous()


def run_as(name: str, kernel: str, *arrays: Array, sizes: Sequence[int] = ()) -> None:
    """Run a kernel that reports a bad index in the name of the op that the user called."""
    try:
        run(kernel, *arrays, sizes=sizes)
    except RangeError as error:
        raise RangeError(error.message.replace(f"{kernel}: ", f"{name}: ")) from None


def _positions(name: str, index: Array) -> Array:
    """Indices in one dimension."""
    return whole_indices(name, index).reshape((index.numel,))


def _around(shape: Shape, dim: int) -> Shape:
    """A shape seen from one of its dimensions: (outer, n, inner)."""
    return (shape_rules.numel(shape[:dim]), shape[dim], shape_rules.numel(shape[dim + 1 :]))


def _pick(kernel: str, x: Array, index: Array) -> Array:
    """Rows of x (outer, n, inner) by index (m): (outer, m, inner)."""
    out = empty((x.shape[0], index.numel, x.shape[2]), x.dtype)
    run(kernel, x, index, out)
    return out


def _unpick(grad: Array, index: Array, around: Shape, skipped: int = -1) -> Array:
    """For each row of (outer, n, inner) the sum of the gradients of its copies."""
    out = empty(around, grad.dtype)
    rows = grad.contiguous().reshape((around[0], index.numel, around[2]))
    run("index_select_backward", rows, index, out, sizes=(skipped,))
    return out


class AlongDim(Op):
    """An op along a dimension that also takes torch's order of arguments: (input, dim, index)."""

    @property
    def __signature__(self) -> Signature:
        """With `dim` where torch has it."""
        usual = super().__signature__.parameters
        order = dict.fromkeys((self.inputs[0], "dim", *usual))
        shown = [usual[name] for name in order]
        return Signature(shown, __validate_parameters__=False)

    def _bind(
        self, args: Sequence[Any], named: dict[str, Any]
    ) -> tuple[list[Tensor | None], dict[str, Any]]:
        if len(args) > 1 and isinstance(args[1], int) and "dim" not in named:
            behind = len(self.inputs) + 1
            if len(args) < behind:
                args, named = (args[0], *args[2:]), {**named, "dim": args[1]}
            else:
                args = (args[0], *args[2:behind], args[1], *args[behind:])
        return super()._bind(args, named)


def _index_select(x: Array, index: Array, *, dim: int) -> Array:
    """The slices of x along `dim` that `index` (one dimension) names, in its order."""
    if x.ndim == 0 or index.ndim > 1:
        raise ShapeError(
            "index_select: needs an x with dimensions and an index with at most one, "
            f"got x {x.shape}, index {index.shape}"
        )
    d = shape_rules.dim_index(dim, x.ndim, "index_select")
    rows = x.contiguous().reshape(_around(x.shape, d))
    picked = _pick("index_select", rows, _positions("index_select", index))
    return picked.reshape((*x.shape[:d], index.numel, *x.shape[d + 1 :]))


index_select = AlongDim(
    _index_select,
    name="index_select",
    saves="index",
    twice="linear",
    samples=[
        sample((5, 3), below((4,), 5), dim=0),
        sample((2, 3, 4), below((7,), 3), dim=1),
        sample((4, 1), below((3,), 1), dim=-1),
        sample((6,), below((), 6), dim=0),
        sample((3, 2), below((0,), 3), dim=0),
        sample((3, 0), below((2,), 3), dim=0),
    ],
    wrong=[
        wrong(sample((3, 2), below((9,), 50), dim=0), "is outside 0..2"),
        wrong(sample((3, 2), below((1,), 3), dim=2), "dim 2 is outside -2..1"),
        wrong(sample((3, 2), below((1, 1), 3), dim=0), "an index with at most one"),
        wrong(sample((3, 2), (2,), dim=0), "indices must be int64 or int32, got gradcli.float64"),
    ],
)
declare_op(index_select)


@index_select.gradient
def index_select_gradient(
    grad: Array, *, index: Array, shapes: tuple[Shape, Shape], dim: int
) -> tuple[Array, None]:
    """Every slice gets the sum over its copies, in the order of their positions."""
    around = _around(shapes[0], dim % len(shapes[0]))
    return _unpick(grad, _positions("index_select", index), around).reshape(shapes[0]), None


def _composed_embedding(
    indices: Tensor, weight: Tensor, *, padding_idx: int | None = None
) -> Tensor:
    rows: Tensor = index_select(weight, indices.reshape(-1), dim=0)
    rows = rows.reshape(*indices.shape, weight.shape[1])
    if padding_idx is None:
        return rows
    hidden = (indices == padding_idx % weight.shape[0]).unsqueeze(-1)
    result: Tensor = where(hidden, rows.detach(), rows)
    return result


@op(
    method=False,
    saves="indices",
    composed=_composed_embedding,
    twice="composed",
    samples=[
        sample(below((4,), 5), (5, 3)),
        sample(below((2, 3), 3), (4, 2), padding_idx=3),  # row 3 itself must not be drawn:
        # its gradient is 0 by decree
        sample(below((2, 1, 3), 2), (3, 1), padding_idx=-1),
        sample(below((), 3), (3, 2)),
        sample(below((0,), 3), (3, 2)),
        sample(below((2,), 3), (3, 0)),
        sample(below((400,), 3), (3, 130)),
    ],
    wrong=[
        wrong(sample(below((9,), 50), (3, 2)), "is outside 0..2"),
        wrong(sample(below((9,), 3), (3,)), "weight must have 2 dimensions, got shape (3,)"),
        wrong(sample((2,), (3, 2)), "indices must be int64 or int32, got gradcli.float64"),
        wrong(sample(below((2,), 3), (3, 2), padding_idx=3), "padding_idx 3 is outside -3..2"),
    ],
)
def embedding(indices: Array, weight: Array, *, padding_idx: int | None = None) -> Array:
    """Rows of weight (V, D) by index: (..., D). Row `padding_idx` gets no gradient."""
    if weight.ndim != 2:
        raise ShapeError(f"embedding: weight must have 2 dimensions, got shape {weight.shape}")
    rows, width = weight.shape
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RangeError(f"embedding: padding_idx {padding_idx} is outside {-rows}..{rows - 1}")
    table = weight.contiguous().reshape((1, rows, width))
    picked = _pick("embedding", table, _positions("embedding", indices))
    return picked.reshape((*indices.shape, width))


@embedding.gradient
def embedding_gradient(
    grad: Array, *, indices: Array, shapes: tuple[Shape, Shape], padding_idx: int | None
) -> tuple[None, Array]:
    """Every row gets the sum over its copies, in the order of their positions."""
    rows, width = shapes[1]
    skipped = -1 if padding_idx is None else padding_idx % rows
    summed = _unpick(grad, _positions("embedding", indices), (1, rows, width), skipped)
    return None, summed.reshape((rows, width))


# -- masks ---------------------------------------------------------------------------------------


class _Where(Op):
    """Takes Python numbers too, and promotes element types; of one tensor it gives the places."""

    @cached_property
    def hints(self) -> dict[str, Any]:
        """What each argument may be, as an annotation."""
        return {"condition": Tensor, "input": Operand, "other": Operand}

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Chosen elements, or places."""
        if len(args) + len(named) == 1:
            return OPS["nonzero"](*args, *named.values(), as_tuple=True)
        return super().__call__(*args, **named)

    def _bind(
        self, args: Sequence[Any], named: dict[str, Any]
    ) -> tuple[list[Tensor | None], dict[str, Any]]:
        given = dict(zip(("condition", "input", "other"), args, strict=False)) | named
        if set(given) != {"condition", "input", "other"} or len(args) + len(named) != 3:
            raise DTypeError(f"where: takes (condition, input, other), got {sorted(given)}")
        condition = self._input("condition", given["condition"])
        a, b = given["input"], given["other"]
        if not isinstance(a, Tensor) and not isinstance(b, Tensor) and isinstance(a, (int, float)):
            a = tensor(a)
        return [condition, *matched("where", a, b)], {}


def _where(condition: Array, input: Array, other: Array) -> Array:
    """`input` where the condition is true, otherwise `other`; all three broadcast."""
    if condition.dtype is not dtypes.bool_:
        raise DTypeError(f"where: condition must be bool, got {condition.dtype}")
    shape = shape_rules.broadcast(input.shape, other.shape, "where")
    shape = shape_rules.broadcast(condition.shape, shape, "where")
    out = empty(shape, dtypes.beside(input.dtype, other.dtype))
    run("where", condition.expand(shape), input.expand(shape), other.expand(shape), out)
    return out


where = _Where(
    _where,
    name="where",
    saves="condition",
    samples=[
        sample(truth((3, 5)), (3, 5), (3, 5)),
        sample(truth((3, 1)), (1, 4), ()),
        sample(truth((4,)), (2, 3, 4), (3, 1)),
        sample(truth((2, 3)), (), ()),
        sample(truth((0, 3)), (1, 3), (1,)),
    ],
    wrong=[
        wrong(sample((3,), (3,), (3,)), "condition must be bool, got gradcli.float64"),
        wrong(sample(truth((3,)), (4,), (1,)), "shapes (3,) and (4,) do not broadcast"),
    ],
)
declare_op(where, method=False)


@where.gradient
def where_gradient(
    grad: Array, *, condition: Array, shapes: tuple[Shape, ...], needs: tuple[bool, ...]
) -> tuple[Array | None, ...]:
    """To the one that was taken; 0 to the other."""
    nothing = scalar(0.0, grad.dtype)
    to_input = unbroadcast(_where(condition, grad, nothing), shapes[1]) if needs[1] else None
    to_other = unbroadcast(_where(condition, nothing, grad), shapes[2]) if needs[2] else None
    return None, to_input, to_other


@where.gradient_graph
def where_gradient_graph(
    grad: Tensor, *, condition: Tensor, shapes: tuple[Shape, ...], needs: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    """To the one that was taken; 0 to the other."""
    to_input = sum_to(where(condition, grad, 0.0), shapes[1]) if needs[1] else None
    to_other = sum_to(where(condition, 0.0, grad), shapes[2]) if needs[2] else None
    return None, to_input, to_other


@function(
    samples=[
        sample((3, 5), truth((3, 5)), value=0.5),
        sample((2, 1, 4), truth((4,)), value=-2),
        sample((2, 3), truth((2, 1)), value=50.0),
        sample((3, 4), truth((3, 4)), ()),
        sample((), truth(()), value=1.5),
        sample((0, 3), truth((3,)), value=0.0),
    ],
    wrong=[
        wrong(sample((3,), below((3,), 2), value=0.5), "mask must be bool, got gradcli.int64"),
        wrong(sample((3,), truth((3,)), (1,)), "value must be one number, got shape (1,)"),
    ],
)
def masked_fill(input: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """`value` where the mask is true, otherwise the input."""
    if mask.dtype is not dtypes.bool_:
        raise DTypeError(f"masked_fill: mask must be bool, got {mask.dtype}")
    if not isinstance(value, Tensor):
        value = full((), value, dtype=input.dtype)
    elif value.ndim:
        raise ShapeError(f"masked_fill: value must be one number, got shape {value.shape}")
    result: Tensor = where(mask, value.to(input.dtype), input)
    return result


def _triangle(kernel: str, x: Array, diagonal: int) -> Array:
    if x.ndim < 2:
        raise ShapeError(f"{kernel}: needs 2 or more dimensions, got shape {x.shape}")
    if isinstance(diagonal, bool) or not isinstance(diagonal, int):
        raise OptionError(f"{kernel}: diagonal must be a whole number, got {diagonal!r}")
    out = empty((shape_rules.numel(x.shape[:-2]), *x.shape[-2:]), x.dtype)
    shift = max(-x.shape[-2] - 1, min(x.shape[-1] + 1, diagonal))  # beyond, nothing changes
    run(kernel, x.contiguous().reshape(out.shape), out, sizes=(shift,))
    return out.reshape(x.shape)


_TRIANGLES = [
    sample((4, 5)),
    sample((2, 5, 3), diagonal=1),
    sample((3, 4), diagonal=-2),
    sample((1, 3), diagonal=9),
    sample((0, 3)),
]


@op(
    twice="linear",
    samples=_TRIANGLES,
    wrong=[wrong(sample((3,)), "tril: needs 2 or more dimensions")],
)
def tril(x: Array, *, diagonal: int = 0) -> Array:
    """The elements on and below a diagonal (counted from the main one, upwards), 0 above it."""
    return _triangle("tril", x, diagonal)


@tril.gradient
def tril_gradient(grad: Array, *, diagonal: int) -> Array:
    """The same triangle of the gradient."""
    return _triangle("tril", grad, diagonal)


@op(
    twice="linear",
    samples=_TRIANGLES,
    wrong=[wrong(sample((3,)), "triu: needs 2 or more dimensions")],
)
def triu(x: Array, *, diagonal: int = 0) -> Array:
    """The elements on and above a diagonal (counted from the main one, upwards), 0 below it."""
    return _triangle("triu", x, diagonal)


@triu.gradient
def triu_gradient(grad: Array, *, diagonal: int) -> Array:
    """The same triangle of the gradient."""
    return _triangle("triu", grad, diagonal)
