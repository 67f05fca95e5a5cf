"""Group norm: mean 0 and variance 1 of each group of channels, then a weight and a bias."""

from __future__ import annotations

from gradcli.engine import shape as shapes
from gradcli.engine import table
from gradcli.engine.array import Array, empty, run
from gradcli.engine.op import declare_op
from gradcli.engine.ops.along import floats, match
from gradcli.engine.ops.norm.inputs import as_vector, backward, by_channel, scale
from gradcli.engine.ops.norm.layer_norm import decomposed_layer_norm
from gradcli.engine.ops.order import OptionSecond
from gradcli.engine.sample import none, sample, wrong
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError
from gradcli.wording import quantity


def _decomposed_group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, *, num_groups: int, eps: float = 1e-5
) -> Tensor:
    row = x.shape[1] // num_groups * shapes.numel(x.shape[2:])
    groups = table.reshape(x, (x.shape[0], num_groups, row))
    lowered = decomposed_layer_norm(groups, None, None, normalized_shape=row, eps=eps)
    channels = (1, -1) + (1,) * (x.ndim - 2)
    return scale(table.reshape(lowered, x.shape), weight, bias, channels)


def _check(x: Array, num_groups: int) -> None:
    if num_groups < 1 or x.shape[1] % num_groups:
        raise OptionError(
            f"group_norm: num_groups {num_groups} must divide the "
            f"{quantity(x.shape[1], 'channel')} of x {x.shape}"
        )
    if x.numel == num_groups:
        raise OptionError(
            f"group_norm: needs more than 1 value for each group, got shape {x.shape}"
        )


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
    match("group_norm", x, weight=weight, bias=bias)
    form = by_channel("group_norm", x, weight=weight, bias=bias)
    _check(x, num_groups)
    y = empty(x.shape, x.dtype)
    groups = (x.shape[0], num_groups)
    mean, rstd = empty(groups, x.dtype.computed), empty(groups, x.dtype.computed)
    inputs = x.contiguous().reshape(form), as_vector(weight, x), as_vector(bias, x)
    run("group_norm", *inputs, y.reshape(form), mean, rstd, options=(eps,))
    return y, mean, rstd


group_norm = declare_op(
    OptionSecond(
        group_norm_forward,
        name="group_norm",
        outputs=("y", "mean", "rstd"),
        saves=("x", "weight", "mean", "rstd"),
        decomposition=_decomposed_group_norm,
        double_backward="decomposition",
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
    of_weight, of_bias = empty(x.shape[1:2], x.dtype), empty(x.shape[1:2], x.dtype)
    statistics, gradients = (mean, rstd, weight), (of_weight, of_bias)
    form = by_channel("group_norm", x)
    out = backward("group_norm_backward", grad, x, form, statistics, gradients)
    return out, of_weight, of_bias
