"""Layer norm: mean 0 and variance 1 of the last dimensions, then a weight and a bias."""

from __future__ import annotations

from collections.abc import Sequence

from gradcli.engine import shape as shapes
from gradcli.engine import table
from gradcli.engine.array import Array, empty, run
from gradcli.engine.kind import Sizes
from gradcli.engine.op import declare_op
from gradcli.engine.ops.along import floats, match
from gradcli.engine.ops.norm.inputs import Gradients, as_vector, backward, last_shape, scale
from gradcli.engine.ops.order import OptionSecond
from gradcli.engine.sample import none, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor


def decomposed_layer_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    *,
    normalized_shape: int | Sequence[int],
    eps: float = 1e-5,
) -> Tensor:
    """The same, written with simpler ops."""
    count = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    dims = tuple(range(-count, 0))
    lowered = x - table.mean(x, dims, keepdim=True)
    y = lowered * table.rsqrt(table.mean(lowered * lowered, dims, keepdim=True) + eps)
    return scale(y, weight, bias, x.shape[x.ndim - count :])


def _rows(x: Array, last: Shape) -> Shape:
    """(rows, elements of a row)."""
    return (shapes.numel(x.shape[: x.ndim - len(last)]), shapes.numel(last))


def layer_norm_forward(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    normalized_shape: Sizes,
    eps: float = 1e-5,
) -> tuple[Array, Array, Array]:
    """(x - mean) / sqrt(var + eps) * weight + bias, over the last dimensions of each sample."""
    last = last_shape("layer_norm", x, normalized_shape, weight=weight, bias=bias)
    x = floats("layer_norm", x)
    match("layer_norm", x, weight=weight, bias=bias)
    rows = _rows(x, last)
    y = empty(x.shape, x.dtype)
    mean, rstd = empty(rows[:1], x.dtype.computed), empty(rows[:1], x.dtype.computed)
    vectors = as_vector(weight, x), as_vector(bias, x)
    flat = x.contiguous().reshape(rows)
    run("layer_norm", flat, *vectors, y.reshape(rows), mean, rstd, options=(eps,))
    return y, mean, rstd


layer_norm = declare_op(
    OptionSecond(
        layer_norm_forward,
        name="layer_norm",
        outputs=("y", "mean", "rstd"),
        saves=("x", "weight", "mean", "rstd"),
        decomposition=decomposed_layer_norm,
        double_backward="decomposition",
        samples=[
            sample((3, 5), (5,), (5,), normalized_shape=(5,)),
            sample((2, 3, 4), (3, 4), none(), normalized_shape=(3, 4), eps=1e-2),
            sample((2, 1, 3), none(), (3,), normalized_shape=3),
            sample((7,), none(), none(), normalized_shape=7),
            sample((2, 1), (1,), (1,), normalized_shape=1),
        ],
        wrong=[
            wrong(sample((3, 5), none(), none(), normalized_shape=4), "x (3, 5) does not end in"),
            wrong(sample((3, 5), (4,), none(), normalized_shape=5), "weight (4,) is not of"),
        ],
    )
)


@layer_norm.gradient
def layer_norm_gradient(
    grad: Array,
    *,
    x: Array,
    weight: Array | None,
    mean: Array,
    rstd: Array,
    normalized_shape: int | Sequence[int],
) -> Gradients:
    """(g - mean(g) - h mean(g h)) * rstd for g = grad * weight, h = (x - mean) rstd."""
    last = last_shape("layer_norm", x, normalized_shape)
    rows = _rows(x, last)
    of_weight, of_bias = empty(last, x.dtype), empty(last, x.dtype)
    flat = of_weight.reshape(rows[1:]), of_bias.reshape(rows[1:])
    out = backward("layer_norm_backward", grad, x, rows, (mean, rstd, weight), flat)
    return out, of_weight, of_bias
