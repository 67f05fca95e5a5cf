"""Sequences as recurrent kernels take them: (steps, batch, n), whatever lies first in memory."""

from __future__ import annotations

from gradcli.engine import shape as shapes
from gradcli.engine.array import Array, empty, nothing, run, unbroadcast
from gradcli.engine.dtype import DType
from gradcli.engine.ops.along import floats, match
from gradcli.engine.ops.matmul.matmul import product
from gradcli.engine.precision import product_options
from gradcli.errors import ShapeError


def check(
    name: str,
    gates: int,
    x: Array,
    w_hh: Array,
    states: dict[str, Array | None],
    batch_first: bool,
) -> int:
    """The number of hidden units, once everything fits: a bias, and first states."""
    floats(name, x)
    match(name, x, w_hh=w_hh, **states)
    many = "hidden" if gates == 1 else f"{gates} * hidden"
    order = f"(batch, steps, {many})" if batch_first else f"(steps, batch, {many})"
    hidden = w_hh.shape[-1] if w_hh.ndim else 0
    if hidden == 0 or w_hh.shape != (gates * hidden, hidden):
        raise ShapeError(f"{name}: w_hh must be ({many}, hidden), got {w_hh.shape}")
    if x.ndim != 3 or x.shape[2] != gates * hidden:
        raise ShapeError(f"{name}: x must be {order} with hidden = {hidden}, got {x.shape}")
    if x.shape[batch_first] == 0:
        raise ShapeError(f"{name}: x {x.shape}, {order}, has no steps; it needs at least one")
    batch = x.shape[not batch_first]
    for key, state in states.items():
        shape = (gates * hidden,) if key == "b_hh" else (batch, hidden)
        if state is not None and state.shape != shape:
            raise ShapeError(
                f"{name}: {key} must be {shape} for x {x.shape}, {order}, got {state.shape}"
            )
    return hidden


def rows(x: Array) -> Array:
    """All steps of all samples as one matrix."""
    return x.reshape((shapes.numel(x.shape[:-1]), x.shape[-1]))


def transpose(x: Array) -> Array:
    """The transposed matrix, a view."""
    return x.permute((1, 0))


def optional(x: Array | None, like: Array) -> Array:
    """Contiguous, as kernels want it; no elements for one that is left out."""
    return nothing(like.dtype) if x is None else x.contiguous()


def timed(x: Array, batch_first: bool) -> Array:
    """A view as (steps, batch, n)."""
    return x.permute((1, 0, 2)) if batch_first else x


def steps(x: Array | None, like: Array, batch_first: bool) -> Array:
    """A gradient as (steps, batch, n) with its rows in one piece; nothing where none arrived."""
    if x is None:
        return nothing(like.dtype)
    return timed(x if x.strides[-1] == 1 else x.contiguous(), batch_first)


def part(x: Array, first: int, count: int, dim: int = 0) -> Array:
    """A view of `count` slices along a dimension."""
    shape = (*x.shape[:dim], count, *x.shape[dim + 1 :])
    inside = shapes.numel(shape) > 0
    return x.view(shape, x.strides, x.offset + (first * x.strides[dim] if inside else 0))


def state(timed: Array, at: int, dtype: DType | None = None) -> Array:
    """A copy of one step."""
    return part(timed, at, 1).cast(dtype or timed.dtype).reshape(timed.shape[1:])


def states_before(y: Array, h0: Array | None, batch_first: bool, reverse: bool) -> Array:
    """The state that each step found, laid out like y."""
    before = empty(y.shape, y.dtype)
    to, count = timed(before, batch_first), y.shape[batch_first]
    source = timed(y, batch_first)
    if count > 1:
        run("copy", part(source, int(reverse), count - 1), part(to, int(not reverse), count - 1))
    first = part(to, count - 1 if reverse else 0, 1)
    if h0 is None:
        run("fill", first, options=(0,))
    else:
        run("copy", h0.reshape((1, *h0.shape)), first)
    return before


def columns(sums: Array) -> Array:
    """The sum of all rows: the gradient of a bias."""
    return unbroadcast(sums, sums.shape[1:])


def weight_gradient(sums: Array, before: Array, out: Array | None = None) -> Array:
    """The gradient of w_hh from those of the gates' sums in rows, and the states before."""
    rows_of_sums = transpose(sums)
    if out is None:
        return product(rows_of_sums, rows(before))
    operands = [x.reshape((1, *x.shape)) for x in (rows_of_sums, rows(before), out)]
    start, options = nothing(sums.dtype), product_options(sums.dtype)
    run("matmul", operands[0], operands[1], start, operands[2], options=options)
    return out
