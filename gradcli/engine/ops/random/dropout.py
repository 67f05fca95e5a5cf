"""Dropout: of elements, of whole channels, and SELU's."""

from __future__ import annotations

from math import sqrt

from gradcli.engine import dtype as dtypes
from gradcli.engine.array import Array, empty, run
from gradcli.engine.composite import function
from gradcli.engine.dtype import DType
from gradcli.engine.op import op
from gradcli.engine.ops.creation.creation import ones
from gradcli.engine.ops.creation.like import full_like
from gradcli.engine.ops.elementwise.family import as_float
from gradcli.engine.ops.index.where import where
from gradcli.engine.ops.random.random import named_draw, next_draw
from gradcli.engine.random import Draw
from gradcli.engine.sample import sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError

_AT_1 = Draw(key=1, step=2, number=3)


def _decomposed_dropout(
    x: Tensor,
    *,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    draw: Draw | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product with what was drawn."""
    del training, inplace, draw
    return x if mask is None else x * _factors(mask, p, x.dtype)


def _factors(mask: Tensor, p: float, dtype: DType) -> Tensor:
    return mask.to(dtype) * (0.0 if p == 1 else 1 / (1 - p))


@op(
    shares="either",
    method=False,
    outputs=("y", "mask"),
    saves="mask",
    decomposition=_decomposed_dropout,
    samples=[
        sample((3, 5), draw=_AT_1),
        sample((4, 1), p=0.2, draw=_AT_1),
        sample((2, 3, 4), p=0.0, draw=_AT_1),
        sample((300,), p=0.9, draw=_AT_1),
        sample((3,), p=1.0, draw=_AT_1),
        sample((2, 3), training=False),
        sample((), draw=_AT_1),
    ],
    wrong=[
        wrong(sample((2,), p=1.5), "dropout: p must be from 0 to 1, got 1.5"),
        wrong(sample((2,), p=float("nan")), "dropout: p must be from 0 to 1"),
        wrong(sample((2,), inplace=True), "dropout: inplace must be False"),
    ],
)
def dropout(
    x: Array,
    *,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    draw: Draw | None = None,
) -> tuple[Array, Array | None]:
    """While training, each element times 0 with probability p, otherwise times 1 / (1 - p).

    Which ones is a draw: `draw` itself, or the next one of the default generator.
    """
    _check("dropout", p, inplace)
    if not training:
        return x, None
    x = as_float(x).contiguous()
    state, number = named_draw(draw) if draw else next_draw(None)
    y, mask = empty(x.shape, x.dtype), empty(x.shape, dtypes.uint8)
    run("dropout_forward", x, state, y, mask, sizes=(number,), options=(p,))
    return y, mask


@dropout.gradient
def dropout_gradient(grad: Array, *, mask: Array | None, p: float) -> Array:
    """The same elements times the same factors."""
    if mask is None:
        return grad
    out = empty(grad.shape, grad.dtype)
    run("dropout_backward", grad.contiguous(), mask, out, options=(p,))
    return out


@dropout.double_backward
def dropout_double_backward(grad: Tensor, *, mask: Tensor | None, p: float) -> Tensor:
    """The same elements times the same factors."""
    return grad if mask is None else grad * _factors(mask, p, grad.dtype)


_FLOOR = -1.7580993408473766  # where SELU ends to the left: -scale * alpha


def _check(op: str, p: float, inplace: bool) -> None:
    if not 0 <= p <= 1:
        raise OptionError(f"{op}: p must be from 0 to 1, got {p}")
    if inplace:
        raise OptionError(f"{op}: inplace must be False; the result is the same")


def _channels(x: Tensor, p: float, whole: int) -> Tensor:
    """Each channel, of `whole` dimensions, of each sample kept or dropped as one."""
    front = x.shape[: x.ndim - whole]
    mask = dropout(ones(*front, *(1,) * whole, dtype=x.dtype), p=p)
    return x * mask


@function(
    shares="either",
    method=False,
    samples=[
        sample((2, 3, 4)),
        sample((5, 1), p=0.3),
        sample((3, 4), p=1.0),
        sample((2, 3, 2), training=False),
    ],
    wrong=[
        wrong(sample((4,)), "input must be (N, C, L) or (C, L), got shape (4,)"),
        wrong(sample((2, 3), inplace=True), "inplace must be False"),
    ],
)
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """While training, whole channels of (N, C, L) or (C, L) become 0 with probability p."""
    _check("dropout1d", p, inplace)
    if input.ndim not in (2, 3):
        raise ShapeError(f"dropout1d: input must be (N, C, L) or (C, L), got shape {input.shape}")
    return _channels(input, p, 1) if training else input


@function(
    shares="either",
    method=False,
    samples=[
        sample((2, 3, 2, 3)),
        sample((4, 2, 1, 2), p=0.2),
        sample((2, 4, 3), p=0.7),
        sample((2, 1, 2, 2), training=False),
        sample((2, 0, 2, 3)),
    ],
    wrong=[
        wrong(sample((2, 3)), "input must be (N, C, H, W), got shape (2, 3)"),
        wrong(sample((1, 1, 2, 2), p=-0.5), "p must be from 0 to 1, got -0.5"),
    ],
)
def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """While training, whole channels of (N, C, H, W) become 0 with probability p.

    (N, C, L) is taken as `dropout1d` takes it.
    """
    _check("dropout2d", p, inplace)
    if input.ndim not in (3, 4):
        raise ShapeError(f"dropout2d: input must be (N, C, H, W), got shape {input.shape}")
    return _channels(input, p, input.ndim - 2) if training else input


@function(
    shares="either",
    method=False,
    samples=[
        sample((3, 5), training=True),
        sample((2, 1, 4), p=0.2, training=True),
        sample((4,), p=1.0, training=True),
        sample((), p=0.0, training=True),
        sample((2, 3)),
    ],
    wrong=[wrong(sample((2,), p=2.0, training=True), "p must be from 0 to 1, got 2.0")],
)
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout to where SELU ends instead of 0; mean and variance stay (Klambauer et al. 2017)."""
    _check("alpha_dropout", p, inplace)
    if not training or p == 0:
        return input
    if p == 1:
        return input * 0
    scale = 1 / sqrt((_FLOOR * _FLOOR * p + 1) * (1 - p))
    mask = dropout(ones(*input.shape, dtype=input.dtype), p=p) > 0
    values = where(mask, input, full_like(input, _FLOOR))
    return values * scale + -scale * _FLOOR * p
