"""Batch norm: mean 0 and variance 1 of each channel, then a weight and a bias."""

from __future__ import annotations

from typing import Any

from gradcli.engine import table
from gradcli.engine.array import Array, copy_into, empty, run, scalar
from gradcli.engine.dtype import DType
from gradcli.engine.kind import NotNegative
from gradcli.engine.op import op
from gradcli.engine.ops.along import floats, match
from gradcli.engine.ops.elementwise.family import map_binary
from gradcli.engine.ops.norm.inputs import Gradients, as_vector, backward, by_channel, scale
from gradcli.engine.recompute import repeating
from gradcli.engine.sample import none, positive, sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError


def _decomposed_batch_norm(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    *,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Values and gradients only: the running statistics stay as they are."""
    del momentum
    shape = (1, -1) + (1,) * (x.ndim - 2)
    dims = (0, *range(2, x.ndim))
    if training or running_mean is None or running_var is None:
        lowered = x - table.mean(x, dims, keepdim=True)
        variance = table.mean(lowered * lowered, dims, keepdim=True)
    else:
        lowered = x - table.reshape(running_mean, shape)
        variance = table.reshape(running_var, shape)
    return scale(lowered * table.rsqrt(variance + eps), weight, bias, shape)


def _running(saved: dict[str, Any], options: dict[str, Any]) -> dict[str, Array | None]:
    """The running statistics; training has made no use of them."""
    if saved["training"]:
        return {"running_mean": None, "running_var": None}
    rstd = saved["rstd"]
    squared = map_binary("div", scalar(1, rstd.dtype), map_binary("mul", rstd, rstd))
    variance = map_binary("sub", squared, scalar(options["eps"], rstd.dtype))
    return {"running_mean": saved["mean"], "running_var": variance}


def _check_channels(x: Array, **vectors: Array | None) -> Shape:
    if any(v is not None and v.dtype is not x.dtype.computed for v in vectors.values()):
        match("batch_norm", x, **vectors)  # beside bfloat16 they may be float32
    return by_channel("batch_norm", x, **vectors)


def _check_batch(x: Array, running: tuple[Array | None, Array | None], training: bool) -> None:
    if (running[0] is None) != (running[1] is None):
        raise OptionError("batch_norm: give both running_mean and running_var, or neither")
    if not training and running[0] is None:
        raise OptionError("batch_norm: without training it needs running_mean and running_var")
    if training and x.numel and x.numel == x.shape[1]:
        raise OptionError(
            f"batch_norm: training needs more than 1 value for each channel, got shape {x.shape}; "
            "use a larger batch"
        )


@op(
    outputs=("y", "mean", "rstd"),
    saves=("x", "weight", "mean", "rstd"),
    decomposition=_decomposed_batch_norm,
    double_backward="decomposition",
    recomputed=_running,
    samples=[
        sample((4, 3), none(), none(), (3,), (3,), training=True),
        sample((2, 3, 5), none(), none(), none(), (3,), training=True, eps=1e-2),
        sample((2, 1, 3, 2), none(), none(), (1,), none(), training=True),
        sample((4, 3), (3,), positive((3,)), (3,), (3,)),
        sample((2, 3, 4), (3,), positive((3,)), none(), none(), eps=1e-3),
        sample((1, 2, 1, 3), (2,), positive((2,)), (2,), (2,)),
        sample((0, 3), (3,), positive((3,)), (3,), (3,)),
        sample((2, 0, 3), none(), none(), none(), none(), training=True),
    ],
    wrong=[
        wrong(sample((3,), none(), none(), none(), none(), training=True), "at least 2 dimensions"),
        wrong(
            sample((4, 3), none(), none(), (2,), none(), training=True), "has 3 channels, weight"
        ),
        wrong(sample((1, 3), none(), none(), none(), none(), training=True), "more than 1 value"),
        wrong(sample((4, 3), none(), none(), none(), none()), "needs running_mean"),
        wrong(sample((4, 3), (3,), none(), none(), none()), "both running_mean and running_var"),
    ],
)
def batch_norm(
    x: Array,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    training: bool = False,
    momentum: float = 0.1,
    eps: NotNegative = 1e-5,
) -> tuple[Array, Array, Array]:
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel of (N, C, ...).

    In training mean and variance are those of the batch, and the running ones move towards them
    (the variance as that of a sample, with n - 1); otherwise the running ones are used.
    """
    x = floats("batch_norm", x)
    running = (None, None) if training and repeating() else (running_mean, running_var)
    vectors = {"running_mean": running_mean, "running_var": running_var}
    form = _check_channels(x, weight=weight, bias=bias, **vectors)
    _check_batch(x, running, training)
    y = empty(x.shape, x.dtype)
    mean, rstd = empty(form[1:2], x.dtype.computed), empty(form[1:2], x.dtype.computed)
    inputs = x.contiguous().reshape(form), as_vector(weight, x), as_vector(bias, x)
    # Written to, so it must not be the shared `nothing`.
    statistics = [empty((0,), x.dtype) if r is None else as_vector(r, x) for r in running]
    results = y.reshape(form), mean, rstd
    if training:
        run("batch_norm_train", *inputs, *results, *statistics, options=(eps, momentum))
        for buffer, new in zip(running, statistics, strict=True):
            _count_write(buffer, new)
    else:
        run("batch_norm_eval", *inputs, *statistics, *results, options=(eps,))
    return y, mean, rstd


def _count_write(buffer: Array | None, new: Array) -> None:
    """Makes sure that a running statistic holds what was written, and tells who saved it."""
    if buffer is None:
        return
    if new.storage is buffer.storage:
        buffer.storage.version += 1
    else:
        copy_into(buffer, new)


@batch_norm.gradient
def batch_norm_gradient(
    grad: Array,
    *,
    x: Array,
    weight: Array | None,
    mean: Array,
    rstd: Array,
    training: bool,
    needs: tuple[bool, ...],
    dtypes: tuple[DType | None, ...],
) -> Gradients:
    """In training as for layer norm, over a channel; otherwise grad * rstd * weight."""
    of_weight, of_bias = (empty(mean.shape, dtypes[i] or mean.dtype) for i in (3, 4))
    statistics, gradients = (mean, rstd, weight), (of_weight, of_bias)
    form = by_channel("batch_norm", x)
    out = backward("batch_norm_backward", grad, x, form, statistics, gradients, (int(training),))
    of_mean = of_var = None
    if not training and (needs[1] or needs[2]):
        scale = rstd if weight is None else map_binary("mul", rstd, weight)
        lowered = map_binary("mul", scale, of_bias)
        of_mean = map_binary("mul", lowered, scalar(-1, x.dtype), dtypes[1])
        slope = map_binary("mul", map_binary("mul", scale, rstd), of_weight)
        of_var = map_binary("mul", slope, scalar(-0.5, x.dtype), dtypes[2])
    return out, of_mean, of_var, of_weight, of_bias
