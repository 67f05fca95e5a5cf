"""Normalisations composed of layer norm, batch norm and simpler ops."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from gradcli.engine import dtype as dtypes
from gradcli.engine import table
from gradcli.engine.array import Array, scalar
from gradcli.engine.composite import function
from gradcli.engine.dtype import DType
from gradcli.engine.kind import NotNegative
from gradcli.engine.op import op
from gradcli.engine.ops.along import floats
from gradcli.engine.ops.elementwise.family import map_binary, map_unary
from gradcli.engine.ops.norm.inputs import by_channel, last_shape
from gradcli.engine.ops.reduce.sum import mean_over
from gradcli.engine.recompute import repeating
from gradcli.engine.sample import away_from, distinct, none, positive, sample, wrong
from gradcli.engine.shape import dim_index, numel
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError, OptionError, ShapeError

_EPSILON = {dtypes.float32: 2.0**-23, dtypes.float64: 2.0**-52}


def _float(op: str, x: Tensor) -> DType:
    if not x.is_floating_point():
        raise DTypeError(f"{op}: input must be float32, float64 or bfloat16, got {x.dtype}")
    return x.dtype


@function(
    samples=[
        sample((2, 3, 5), none(), none(), (3,), (3,)),
        sample((2, 2, 3, 4), eps=0.5),
        sample((3, 2, 4), (2,), positive((2,)), (2,), use_input_stats=False),
        sample((1, 3, 1, 2), none(), none(), none(), (3,)),
        sample((0, 3, 4)),
    ],
    method=False,
)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: NotNegative = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias, over each channel of each sample.

    Mean and variance are those of the sample's channel (Ulyanov et al. 2016). The running
    statistics move towards the mean over the samples; without use_input_stats they are used
    instead.
    """
    _float("instance_norm", input)
    channels = by_channel("instance_norm", input, weight=weight, bias=bias)[1]
    if (running_mean is None) != (running_var is None):
        raise OptionError("instance_norm: give both running_mean and running_var, or neither")
    if not use_input_stats:
        return table.batch_norm(input, running_mean, running_var, weight, bias, eps=eps)
    if input.numel() and numel(input.shape[2:]) == 1:
        raise OptionError(
            f"instance_norm: needs more than 1 value for each channel, got shape {input.shape}"
        )
    if running_mean is not None and running_var is not None:
        return _with_statistics(input, (running_mean, running_var), (weight, bias), momentum, eps)
    alone = table.group_norm(input, max(channels, 1), weight, bias, eps)
    return alone.to(input.dtype)  # in bfloat16 as batch norm, not in float32 as group norm


def _with_statistics(
    input: Tensor,
    running: tuple[Tensor, Tensor],
    learnt: tuple[Tensor | None, Tensor | None],
    momentum: float,
    eps: float,
) -> Tensor:
    """Instance norm as batch norm of one sample, whose channels are the planes of all samples."""
    samples, channels, *inside = input.shape
    mean, var = own = [_repeat(statistic.detach(), samples) for statistic in running]
    weight, bias = (None if v is None else _repeat(v, samples) for v in learnt)
    planes = table.reshape(input, (1, samples * channels, *inside))
    y = table.batch_norm(planes, mean, var, weight, bias, True, momentum, eps)
    pairs = () if repeating() else zip(running, own, strict=True)
    for statistic, new in pairs:
        statistic.copy_(table.mean(table.reshape(new, (samples, channels)), 0))
    return table.reshape(y, input.shape)


def _repeat(vector: Tensor, times: int) -> Tensor:
    """A copy of a vector for each sample, one behind the other."""
    rows = table.expand(table.reshape(vector, (1, -1)), (times, vector.shape[0]))
    return table.reshape(table.clone(rows), (-1,))


@function(
    samples=[
        sample((3, 5), (5,), normalized_shape=5),
        sample((2, 3, 4), normalized_shape=(3, 4)),
        sample((4, 3), (3,), normalized_shape=(3,), eps=0.5),
        sample((2, 1), normalized_shape=1),
    ],
    method=False,
)
def rms_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    eps: NotNegative | None = None,
) -> Tensor:
    """X / sqrt(mean(x^2) + eps) * weight over the last dimensions (Zhang and Sennrich 2019).

    eps is the distance of 1 to the next number where it is left out.
    """
    dtype = _float("rms_norm", input)
    count = len(last_shape("rms_norm", input, normalized_shape, weight=weight))
    y = over_rms(input, count, _EPSILON[dtype.computed] if eps is None else eps)
    return y if weight is None else y * weight


def _decomposed_over_rms(x: Tensor, *, last: int, eps: float) -> Tensor:
    wide = x.to(x.dtype.computed)
    square = table.mean(wide * wide, tuple(range(-last, 0)), keepdim=True)
    return (wide * table.rsqrt(square + eps)).to(x.dtype)


@op(
    method=False,
    saves=("x", "scale"),
    outputs=("y", "scale"),
    decomposition=_decomposed_over_rms,
    double_backward="decomposition",
    samples=[
        sample((3, 5), last=1, eps=0.0),
        sample((2, 3, 4), last=2, eps=0.5),
        sample((2, 1), last=1, eps=1e-5),
        sample((0, 3), last=1, eps=1e-5),
    ],
    wrong=[wrong(sample((2, 3), last=3, eps=0.0), "last must be from 1 to 2, got 3")],
)
def over_rms(x: Array, *, last: int, eps: float) -> tuple[Array, Array]:
    """X / sqrt(mean(x^2) + eps) over the last `last` dimensions."""
    floats("over_rms", x)
    if not 0 < last <= x.ndim:
        raise ShapeError(f"over_rms: last must be from 1 to {x.ndim}, got {last}")
    wide = x.cast(x.dtype.computed) if x.dtype is not x.dtype.computed else x
    square = mean_over(map_binary("mul", wide, wide), _last(x, last))
    scale = map_unary("rsqrt", map_binary("add", square, scalar(eps, wide.dtype)))
    y = map_binary("mul", wide, scale)
    return y if y.dtype is x.dtype else y.cast(x.dtype), scale


def _last(x: Array, count: int) -> tuple[int, ...]:
    return tuple(range(x.ndim - count, x.ndim))


@over_rms.gradient
def over_rms_gradient(grad: Array, *, x: Array, scale: Array, last: int) -> Array:
    """(grad - x mean(grad x) scale^2) scale, where y is x times the scale."""
    wide, of_y = (a if a.dtype is scale.dtype else a.cast(scale.dtype) for a in (x, grad))
    shared = mean_over(map_binary("mul", of_y, wide), _last(x, last))
    share = map_binary("mul", shared, map_binary("mul", scale, scale))
    slope = map_binary("mul", map_binary("sub", of_y, map_binary("mul", wide, share)), scale)
    return slope if slope.dtype is x.dtype else slope.cast(x.dtype)


@function(
    samples=[
        sample((2, 5, 4), size=3),
        sample((1, 4, 3, 2), size=2, alpha=0.5, beta=0.5, k=2.0),
        sample((2, 3, 1), size=5, alpha=1.0),
        sample((2, 3, 4), size=1, beta=1.0),
    ],
    method=False,
)
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """X / (k + alpha mean(x^2 of `size` channels around))^beta (Krizhevsky et al. 2012)."""
    _float("local_response_norm", input)
    if input.ndim < 3:
        raise ShapeError(
            f"local_response_norm: input needs 3 or more dimensions, got {input.shape}"
        )
    if not isinstance(size, int) or size < 1:
        raise OptionError(f"local_response_norm: size must be at least 1, got {size}")
    if not input.numel():
        return input
    n, channels = input.shape[:2]
    lines = table.reshape(input * input, (n, 1, channels, -1))
    # With an even size the window reaches one channel further down than up.
    around = table.avg_pool2d(
        lines, kernel_size=(size, 1), stride=1, padding=(size // 2, 0), divisor_override=size
    )
    around = table.reshape(around[:, 0, :channels], input.shape)
    return input / (around * alpha + k) ** beta


@function(
    samples=[
        sample((3, 5)),
        sample(away_from((2, 3, 4)), p=1.0, dim=-1),
        sample(away_from((4, 2)), p=3.0, dim=0),
        sample(distinct((3, 4)), p=inf),
        sample((3, 1), eps=10.0),
    ],
    method=False,
)
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: NotNegative = 1e-12) -> Tensor:
    """X / max(norm, eps), with the p-norm along `dim`."""
    _float("normalize", input)
    at = dim_index(dim, input.ndim, "normalize")
    if p == 2:
        # Below eps the bound stands in for the norm, so that 0 has a slope.
        return input / table.clamp(table.vector_norm(input, at, keepdim=True), min=eps)
    size = abs(input)
    if p == 1:
        norm = table.clamp(table.sum(size, at, keepdim=True), min=eps)
    elif p == 0:
        norm = table.clamp(table.sum((size > 0).to(input.dtype), at, keepdim=True), min=eps)
    elif p == inf:
        norm = table.clamp(table.amax(size, at, keepdim=True), min=eps)
    else:
        norm = table.clamp(table.sum(size**p, at, keepdim=True), min=eps**p) ** (1 / p)
    return input / norm
