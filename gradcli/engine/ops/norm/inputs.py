"""What norms share: the inputs that they take, and the frame of their gradients."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.engine import shape as shapes
from gradcli.engine.array import Array, empty, nothing, run
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import ShapeError
from gradcli.wording import quantity

Gradients = tuple[Array | None, ...]


def by_channel(op: str, x: Array | Tensor, **vectors: Array | Tensor | None) -> Shape:
    """An input (N, C, ...) as (N, C, L); refuses vectors that do not have a number a channel."""
    if x.ndim < 2:
        raise ShapeError(f"{op}: x needs at least 2 dimensions (N, C, ...), got {x.shape}")
    for name, vector in vectors.items():
        if vector is not None and vector.shape != x.shape[1:2]:
            raise ShapeError(
                f"{op}: x {x.shape} has {quantity(x.shape[1], 'channel')}, {name} has "
                f"{vector.shape}"
            )
    return (*x.shape[:2], shapes.numel(x.shape[2:]))


def last_shape(
    op: str,
    x: Array | Tensor,
    normalized_shape: int | Sequence[int],
    **vectors: Array | Tensor | None,
) -> Shape:
    """`normalized_shape` as a tuple, in which the input must end, and which vectors must have."""
    last = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not last or x.shape[x.ndim - len(last) :] != last or len(last) > x.ndim:
        raise ShapeError(f"{op}: x {x.shape} does not end in normalized_shape {last}")
    for name, vector in vectors.items():
        if vector is not None and vector.shape != last:
            raise ShapeError(f"{op}: {name} {vector.shape} is not of normalized_shape {last}")
    return last


def as_vector(x: Array | None, like: Array) -> Array:
    """Flat and contiguous, as kernels want it; no elements for one that is left out."""
    return nothing(like.dtype) if x is None else x.contiguous().reshape((x.numel,))


def scale(y: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Shape) -> Tensor:
    """What is normalized times the weight, plus the bias, both in this shape."""
    y = y if weight is None else y * weight.reshape(shape)
    return y if bias is None else y + bias.reshape(shape)


def backward(
    kernel: str,
    grad: Array,
    x: Array,
    form: Shape,
    statistics: tuple[Array, Array, Array | None],
    gradients: tuple[Array, Array],
    sizes: Sequence[int] = (),
) -> Array:
    """The gradient of x, seen in a form that the kernel knows, beside those of weight and bias.

    `statistics` are the mean, 1 / the deviation, and the weight.
    """
    out = empty(x.shape, x.dtype)
    mean, rstd, weight = statistics
    flat = x.contiguous().reshape(form), grad.contiguous().reshape(form)
    results = out.reshape(form), *gradients
    run(kernel, *flat, mean, rstd, as_vector(weight, x), *results, sizes=sizes)
    return out
