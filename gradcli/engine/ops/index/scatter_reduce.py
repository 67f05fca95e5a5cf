"""Scatter that joins what is put with what is there: products, extremes, means."""

from __future__ import annotations

from math import inf
from typing import Any

from gradcli.engine import dtype as dtypes
from gradcli.engine import shape as shape_rules
from gradcli.engine.array import Array, empty, full, run
from gradcli.engine.composite import rename
from gradcli.engine.dtype import DType
from gradcli.engine.op import declare_op
from gradcli.engine.ops.creation.like import full_like
from gradcli.engine.ops.elementwise.comparison import eq
from gradcli.engine.ops.elementwise.family import map_binary
from gradcli.engine.ops.index.index_select import ADD, MAX, MIN, MULTIPLY
from gradcli.engine.ops.index.scatter import (
    checked,
    gather,
    gathered,
    masked,
    put_along,
    scatter,
    scatter_add,
)
from gradcli.engine.ops.index.slices import getitem
from gradcli.engine.ops.index.where import where
from gradcli.engine.ops.order import OptionSecond
from gradcli.engine.sample import distinct, sample, wrong
from gradcli.engine.sample import index as below
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, GradcliError, OptionError

_JOINS = {"prod": MULTIPLY, "amax": MAX, "amin": MIN}


class _ScatterReduce(OptionSecond):
    """Sums and means are scatter_add's; what is there may be left out of all of them."""

    def __call__(self, *args: Any, **keywords: Any) -> Tensor:
        """Join src with what is there: "sum", "prod", "mean", "amax" or "amin"."""
        try:
            return self._joined(args, keywords)
        except GradcliError as error:
            rename(error, self.name)
            raise

    def _joined(self, args: tuple[object, ...], keywords: dict[str, object]) -> Tensor:
        (x, index, src), options = self._bind(args, keywords)
        assert x is not None and index is not None and src is not None
        reduce, include = options["reduce"], options.get("include_self", True)
        if reduce not in (*_JOINS, "sum", "mean"):
            raise OptionError(
                f"scatter_reduce: reduce must be sum, prod, mean, amax or amin, got {reduce!r:.60}"
            )
        if x.dtype is dtypes.bool_ and reduce in ("sum", "mean"):
            raise DTypeError("scatter_reduce: truths cannot be added; use input.long()")
        dim = options["dim"]
        checked("scatter_reduce", x.array, index.array, src.array, dim)
        if src.shape != index.shape and index.ndim:
            src = getitem(src, index=tuple(slice(n) for n in index.shape))
        if not include:
            reached = scatter(full_like(x, 0, dtype=dtypes.bool_), dim, index, True)
            x = where(reached, full_like(x, _neutral(reduce, x.dtype)), x)
        if reduce in _JOINS:
            return super().__call__(x, index, src, dim=dim, reduce=reduce)
        total = scatter_add(x, index, src, dim=dim)
        if reduce == "sum":
            return total
        ones = full_like(index, 1, dtype=x.dtype)
        counts = scatter_add(full_like(x, int(include)), dim, index, ones)
        counts = counts.clamp(min=1)
        return total / counts if x.is_floating_point() else (total.double() / counts).floor().to(x)


def _neutral(reduce: str, dtype: DType) -> float:
    """What leaves every other number as it is when the two are joined."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.is_floating_point:
        return -inf if reduce == "amax" else inf
    if dtype is dtypes.bool_:
        return reduce == "amin"
    top = 255 if dtype is dtypes.uint8 else (1 << (8 * dtype.size - 1)) - 1
    low = 0 if dtype is dtypes.uint8 else -top - 1
    return low if reduce == "amax" else top


def _scatter_reduce(
    x: Array, index: Array, src: Array, *, dim: int, reduce: str, include_self: bool = True
) -> Array:
    """The input with src joined with what is at index along `dim`, as `reduce` says."""
    del include_self  # what is there has been made neutral
    d = shape_rules.dim_index(dim, x.ndim, "scatter_reduce")
    return put_along(x, index, src, d, _JOINS[reduce], "scatter_reduce")


scatter_reduce = _ScatterReduce(
    _scatter_reduce,
    name="scatter_reduce",
    saves=("x", "index", "src", "y"),
    samples=[
        sample(distinct((5, 3)), below((6, 3), 5), distinct((6, 3)), dim=0, reduce="amax"),
        sample(distinct((2, 5)), below((2, 4), 5), distinct((3, 5)), dim=1, reduce="amin"),
        sample((4, 2), below((6, 2), 4), (6, 2), dim=0, reduce="prod"),
        sample((4, 2), below((6, 2), 4), (6, 2), dim=0, reduce="sum"),
        sample((4, 2), below((6, 1), 4), (6, 2), dim=-2, reduce="mean"),
        sample((4, 2), below((3, 2), 4), (3, 2), dim=0, reduce="mean", include_self=False),
        sample((4, 2), below((3, 2), 4), (3, 2), dim=0, reduce="prod", include_self=False),
        sample(
            distinct((4, 2)),
            below((3, 2), 4),
            distinct((3, 3)),
            dim=0,
            reduce="amax",
            include_self=False,
        ),
        sample((0, 3), below((0, 2), 3), (0, 2), dim=1, reduce="prod"),
    ],
    wrong=[
        wrong(sample((3,), below((3,), 3), (3,), dim=0, reduce="max"), "reduce must be sum, prod"),
        wrong(sample((3,), below((3,), 3), (2,), dim=0, reduce="sum"), "is larger than src (2,)"),
    ],
)
declare_op(scatter_reduce)


@scatter_reduce.gradient
def scatter_reduce_gradient(
    grad: Array,
    *,
    x: Array,
    index: Array,
    src: Array,
    y: Array,
    dim: int,
    reduce: str,
) -> tuple[Array | None, ...]:
    """Of a product the others' product; of an extreme an even share to all that tie for it."""
    d = shape_rules.dim_index(dim, x.ndim, "scatter_reduce")
    share = _of_product if reduce == "prod" else _of_extreme
    to_x, to_src = share(grad, x, index, src, y, d)
    return to_x, None, to_src


@scatter_reduce.double_backward
def scatter_reduce_double_backward(
    grad: Tensor, *, x: Tensor, index: Tensor, src: Tensor, y: Tensor, dim: int, reduce: str
) -> tuple[Tensor | None, ...]:
    """Of a product the others' product; of an extreme an even share to all that tie for it."""
    if reduce == "prod":
        return _product_double_backward(grad, x, index, src, dim)
    wins_x, there = eq(x.detach(), y.detach()), gather(y.detach(), dim, index)
    wins_src = eq(src.detach(), there)
    even = grad / _count_true(wins_x, wins_src, index, dim, grad.dtype)
    return where(wins_x, even, 0.0), None, where(wins_src, gather(even, dim, index), 0.0)


def _count_true(
    truth_x: Tensor, truth_src: Tensor, index: Tensor, dim: int, dtype: DType
) -> Tensor:
    return scatter_add(truth_x.to(dtype), dim, index, truth_src.to(dtype))


def _product_double_backward(
    grad: Tensor, x: Tensor, index: Tensor, src: Tensor, dim: int
) -> tuple[Tensor | None, ...]:
    none_x, none_src = eq(x.detach(), 0), eq(src.detach(), 0)
    zeros = _count_true(none_x, none_src, index, dim, x.dtype)
    plain_x, plain_src = where(none_x, 1.0, x), where(none_src, 1.0, src)
    rest = grad * scatter_reduce(plain_x, dim, index, plain_src, reduce="prod")
    # The sum of what is 0: no value, but a slope of 1 for each.
    nulls = scatter_add(where(none_x, x, 0.0), dim, index, where(none_src, src, 0.0))

    def peer_product(own: Tensor, at: Tensor, plain: Tensor, *per_target: Tensor) -> Tensor:
        zeros, rest, nulls = per_target
        # Zeros among the others: with one, the product is that one.
        peer_zeros = zeros - own.to(at.dtype)
        factor = where(peer_zeros == 1, nulls - where(own, at, 0.0), 0.0)
        return where(peer_zeros == 0, 1.0, factor) * rest / plain

    there = (gather(each, dim, index) for each in (zeros, rest, nulls))
    to_src = peer_product(none_src, src, plain_src, *there)
    return peer_product(none_x, x, plain_x, zeros, rest, nulls), None, to_src


def _counted(truth_x: Array, truth_src: Array, index: Array, d: int, dtype: DType) -> Array:
    """How many are true, of an element and of what was joined with it."""
    return put_along(truth_x.cast(dtype), index, truth_src.cast(dtype), d, ADD, "scatter_reduce")


def _of_extreme(
    grad: Array, x: Array, index: Array, src: Array, y: Array, d: int
) -> tuple[Array, Array]:
    wins_x = map_binary("eq", x, y, dtypes.bool_)
    wins_src = map_binary("eq", src, gathered(y, index, d), dtypes.bool_)
    even = map_binary("div", grad, _counted(wins_x, wins_src, index, d, grad.dtype))
    return masked(even, wins_x), masked(gathered(even, index, d), wins_src)


def _of_product(
    grad: Array, x: Array, index: Array, src: Array, y: Array, d: int
) -> tuple[Array, Array]:
    """The product of all others: y / x; where x is the only 0 the product of the rest."""
    del y
    zero, one = full((), 0, x.dtype), full((), 1, x.dtype)
    none_x, none_src = (map_binary("eq", a, zero, dtypes.bool_) for a in (x, src))
    zeros = _counted(none_x, none_src, index, d, x.dtype)
    plain_x, plain_src = (_where(none, one, a) for none, a in ((none_x, x), (none_src, src)))
    product = put_along(plain_x, index, plain_src, d, MULTIPLY, "scatter_reduce")
    rest = map_binary("mul", grad, product)

    def peer_product(own_zero: Array, plain: Array, zeros: Array, rest: Array) -> Array:
        alone = map_binary("eq", zeros, own_zero.cast(x.dtype), dtypes.bool_)
        return masked(map_binary("div", rest, plain), alone)

    there = gathered(zeros, index, d), gathered(rest, index, d)
    return peer_product(none_x, plain_x, zeros, rest), peer_product(none_src, plain_src, *there)


def _where(mask: Array, a: Array, b: Array) -> Array:
    """The value a where the mask is true, otherwise b."""
    out = empty(b.shape, b.dtype)
    run("where", mask, a.expand(b.shape), b, out)
    return out
