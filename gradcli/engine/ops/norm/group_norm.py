"""Group norm: mean 0 and variance 1 of each group of channels, then a weight and a bias."""

from __future__ import annotations

from gradcli.engine import shape as shapes
from gradcli.engine import table
from gradcli.engine.array import Array, empty, run
from gradcli.engine.op import declare_op
from gradcli.engine.ops.along import floats, match
from gradcli.engine.ops.norm.layer_norm import as_vector, composed_layer_norm
from gradcli.engine.ops.order import OptionSecond
from gradcli.engine.sample import none, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError


def _composed_group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, *, num_groups: int, eps: float = 1e-5
) -> Tensor:
    row = x.shape[1] // num_groups * shapes.numel(x.shape[2:])
    groups = table.reshape(x, (x.shape[0], num_groups, row))
    lowered = composed_layer_norm(groups, None, None, normalized_shape=row, eps=eps)
    y = table.reshape(lowered, x.shape)
    channels = (1, -1) + (1,) * (x.ndim - 2)
    y = y if weight is None else y * table.reshape(weight, channels)
    return y if bias is None else y + table.reshape(bias, channels)


def _check(x: Array, num_groups: int, **vectors: Array | None) -> None:
    if x.ndim < 2:
        raise ShapeError(f"group_norm: x needs at least 2 dimensions (N, C, ...), got {x.shape}")
    match("group_norm", x, **vectors)
    channels = x.shape[1]
    for name, given in vectors.items():
        if given is not None and given.shape != (channels,):
            raise ShapeError(
                f"group_norm: x {x.shape} has {channels} channels, {name} has {given.shape}"
            )
    if not isinstance(num_groups, int) or num_groups < 1 or channels % num_groups:
        raise OptionError(
            f"group_norm: num_groups {num_groups} must divide the {channels} channels "
            f"of x {x.shape}"
        )
    if x.numel == num_groups:
        raise OptionError(
            f"group_norm: needs more than 1 value for each group, got shape {x.shape}"
        )


def _folded(x: Array) -> Shape:
    """The shape as (N, C, L)."""
    return (*x.shape[:2], shapes.numel(x.shape[2:]))


def group_norm_forward(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    num_groups: int,
    eps: float = 1e-5,
) -> tuple[Array, Array, Array]:
    """(x - mean) / sqrt(var + eps) * weight + bias, over each group of channels of each sample.

    Mean and variance are those of the group (Wu and He 2018).
    """
    x = floats("group_norm", x)
    _check(x, num_groups, weight=weight, bias=bias)
    y = empty(x.shape, x.dtype)
    groups = (x.shape[0], num_groups)
    mean, rstd = empty(groups, x.dtype.computed), empty(groups, x.dtype.computed)
    given = x.contiguous().reshape(_folded(x)), as_vector(weight, x), as_vector(bias, x)
    run("group_norm", *given, y.reshape(_folded(x)), mean, rstd, options=(eps,))
    return y, mean, rstd


group_norm = declare_op(
    OptionSecond(
        group_norm_forward,
        name="group_norm",
        outputs=("y", "mean", "rstd"),
        saves=("x", "weight", "mean", "rstd"),
        composed=_composed_group_norm,
        twice="composed",
        samples=[
            sample((2, 6, 5), (6,), (6,), num_groups=3),
            sample((3, 8), none(), none(), num_groups=2),
            sample((2, 3, 2, 1), (3,), none(), num_groups=1, eps=0.5),
            sample((2, 4, 17), (4,), (4,), num_groups=2),
        ],
        wrong=[
            wrong(
                sample((1, 2, 1), none(), none(), num_groups=2),
                "needs more than 1 value for each group",
            ),
            wrong(sample((2, 6), none(), none(), num_groups=4), "num_groups 4 must divide the 6"),
            wrong(sample((2, 6), (5,), none(), num_groups=2), "has 6 channels, weight has (5,)"),
        ],
    ),
    method=False,
)


@group_norm.gradient
def group_norm_gradient(
    grad: Array, *, x: Array, weight: Array | None, mean: Array, rstd: Array
) -> tuple[Array, Array, Array]:
    """(g - mean(g) - h mean(g h)) * rstd for g = grad * weight, h = (x - mean) rstd."""
    out = empty(x.shape, x.dtype)
    of_weight, of_bias = empty(x.shape[1:2], x.dtype), empty(x.shape[1:2], x.dtype)
    folded = _folded(x)
    run(
        "group_norm_backward",
        x.contiguous().reshape(folded),
        grad.contiguous().reshape(folded),
        mean,
        rstd,
        as_vector(weight, x),
        out.reshape(folded),
        of_weight,
        of_bias,
    )
    return out, of_weight, of_bias
