"""Every layer that YAML names: its class, and what YAML calls its parameters.

Where no class has what YAML offers, a function with the same kind of signature makes the module.
See layer.py for the form; containers.py for layers that hold layers.
"""

from __future__ import annotations

from math import prod
from typing import Any, Literal

from gradcli.config.fields import Border, Factors, Padded, Shape, Sizes, Units, Window
from gradcli.config.layer import LayerSpec
from gradcli.config.modules import GRUStates, LSTMStates, RNNStates
from gradcli.config.row import passing_on
from gradcli.config.tensor_spec import shape_text
from gradcli.engine import nn
from gradcli.engine.kind import Count, Finite, Positive, Share
from gradcli.engine.nn.self_attention import Activation, NormKind
from gradcli.errors import ShapeError
from gradcli.wording import quantity

Sample = tuple[int, ...]


def reshape(sample: Sample, shape: Shape) -> nn.Module:
    """The values of a sample in another shape, in the same order."""
    if prod(sample) != prod(shape):
        raise ShapeError(
            f"the input {shape_text(sample)} has {quantity(prod(sample), 'value')}, "
            f"{shape_text(shape)} has {prod(shape)}"
        )
    return nn.Sequential(nn.Flatten(), nn.Unflatten(1, shape))


def embed(num_embeddings: int, dim: Count, *, std: Positive | None = None) -> nn.Module:
    """A learnt row of `dim` numbers for each index, initialised from a normal distribution.

    `std` defaults to 0.02 in a model with `positions`, `attention` or `transformer`, and to 1 in
    any other.
    """
    table = nn.Embedding(num_embeddings, dim)
    if std not in (None, 1.0):
        nn.init.normal_(table.weight, 0.0, std)
    return table


def avg_pool(
    sample: Sample,
    kernel: Window,
    *,
    stride: Sizes | None = None,
    padding: Padded = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> nn.Module:
    """The mean of each window; `global` averages whole channels and returns a row of channels."""
    if kernel != "global":
        return nn.AvgPool2d(kernel, stride, padding, ceil_mode, count_include_pad)
    if stride is not None or padding != 0 or ceil_mode or not count_include_pad:
        raise ShapeError("a global window has no stride and no padding")
    return nn.Sequential(nn.AvgPool2d(sample[1:]), nn.Flatten())


def upsample(
    scale_factor: Factors | None = None,
    *,
    size: Sizes | None = None,
    mode: Literal["nearest", "nearest-exact", "linear", "bilinear"] = "nearest",
    align_corners: bool = False,
) -> nn.Module:
    """Resizes by the nearest value, or by linear interpolation between neighbours."""
    return nn.Upsample(size, scale_factor, mode, align_corners or None)


def pad(
    sample: Sample,
    padding: Border,
    *,
    mode: Literal["constant", "reflect", "replicate", "circular"] = "constant",
    value: Finite = 0.0,
) -> nn.Module:
    """Pads a line or an image with one value, its mirror image, its edge, or its other end."""
    lines = len(sample) == 2
    if mode == "constant":
        return (nn.ConstantPad1d if lines else nn.ConstantPad2d)(padding, value)
    if value:
        raise ShapeError(f"value is for constant, not {mode}")
    kinds = {
        "reflect": (nn.ReflectionPad1d, nn.ReflectionPad2d),
        "replicate": (nn.ReplicationPad1d, nn.ReplicationPad2d),
        "circular": (nn.CircularPad1d, nn.CircularPad2d),
    }
    return kinds[mode][0 if lines else 1](padding)


@passing_on(nn.SelfAttention, but="dim rotary_steps dtype")
def attention(
    sample: Sample,
    heads: Count,
    *,
    dropout: Share = 0.0,
    rotary: bool = False,
    eps: Positive = 1e-5,
    **further: Any,
) -> nn.SelfAttention:
    """Multi-head self-attention: each step becomes an average of steps, weighted by similarity."""
    steps, features = sample
    rotary_steps = steps if rotary else None
    return nn.SelfAttention(
        features, heads, dropout=dropout, rotary_steps=rotary_steps, eps=eps, **further
    )


@passing_on(attention)
def transformer(
    sample: Sample,
    heads: Count,
    *,
    mlp: Units = "4x",
    norm: Literal["pre", "post"] = "pre",
    norm_kind: NormKind = "layer",
    activation: Activation = "gelu",
    dropout: Share = 0.0,
    bias: bool = True,
    eps: Positive = 1e-5,
    **further: Any,
) -> nn.Module:
    """Attention and an MLP of two linear layers, each with a norm and a residual connection."""
    inner = mlp if isinstance(mlp, int) else int(mlp.removesuffix("x")) * sample[-1]
    inside = attention(sample, heads, dropout=dropout, bias=bias, eps=eps, **further)
    first = norm == "pre"
    return nn.TransformerBlock(
        inside, inner, activation, first, dropout, eps, bias, norm_kind=norm_kind
    )


def prelu(sample: Sample, init: Finite = 0.25, *, per_channel: bool = False) -> nn.Module:
    """The input where it is positive, otherwise a learnt weight times x."""
    return nn.PReLU(sample[0] if per_channel else 1, init)


def threshold(threshold: Finite, *, value: Finite = 0.0) -> nn.Module:
    """The input where it is above the threshold, otherwise the value."""
    return nn.Threshold(threshold, value)


def _along(kind: type[nn.Module]) -> LayerSpec:
    """A layer along a dimension of the sample, which the batch comes before."""

    def make(sample: Sample, dim: int = -1) -> nn.Module:
        if not -len(sample) <= dim < len(sample):
            raise ShapeError(
                f"dim {dim} is not one of the {quantity(len(sample), 'dimension')} of "
                f"{shape_text(sample)}"
            )
        return kind(dim + 1 if dim >= 0 else dim)  # type: ignore[call-arg]

    make.__name__, make.__doc__ = kind.__name__, kind.__doc__
    return LayerSpec(make, "dim")


_FILTERS = "out=out_channels kernel=kernel_size stride padding"
_CONV = f"{_FILTERS} dilation groups bias padding_mode in=in_channels"
_TRANSPOSED = f"{_FILTERS} output_padding dilation groups bias in=in_channels"
_POOL = "kernel=kernel_size stride padding ceil_mode"
_STATES = "depth=num_layers bidirectional last dropout bias"

LAYERS: dict[str, LayerSpec] = {
    "flatten": LayerSpec(anything=nn.Flatten, keys=""),
    "reshape": LayerSpec(reshape, "shape"),
    "linear": LayerSpec(nn.Linear, "out=out_features bias in=in_features tied"),
    "embed": LayerSpec(indices=embed, keys="dim std"),
    "conv": LayerSpec(images=nn.Conv2d, keys=_CONV),
    "conv_transpose": LayerSpec(images=nn.ConvTranspose2d, keys=_TRANSPOSED),
    "conv1d": LayerSpec(lines=nn.Conv1d, keys=_CONV),
    "conv_transpose1d": LayerSpec(lines=nn.ConvTranspose1d, keys=_TRANSPOSED),
    "max_pool": LayerSpec(images=nn.MaxPool2d, keys=f"{_POOL} dilation"),
    "avg_pool": LayerSpec(images=avg_pool),
    "max_pool1d": LayerSpec(lines=nn.MaxPool1d, keys=f"{_POOL} dilation"),
    "avg_pool1d": LayerSpec(lines=nn.AvgPool1d, keys=f"{_POOL} count_include_pad"),
    "adaptive_avg_pool": LayerSpec(images=nn.AdaptiveAvgPool2d, keys="size=output_size"),
    "adaptive_max_pool": LayerSpec(images=nn.AdaptiveMaxPool2d, keys="size=output_size"),
    "adaptive_avg_pool1d": LayerSpec(lines=nn.AdaptiveAvgPool1d, keys="size=output_size"),
    "adaptive_max_pool1d": LayerSpec(lines=nn.AdaptiveMaxPool1d, keys="size=output_size"),
    "upsample": LayerSpec(
        lines=upsample, images=upsample, keys="scale=scale_factor size mode align_corners"
    ),
    "pad": LayerSpec(lines=pad, images=pad, keys="size=padding mode value"),
    "pixel_shuffle": LayerSpec(images=nn.PixelShuffle, keys="factor=upscale_factor"),
    "pixel_unshuffle": LayerSpec(images=nn.PixelUnshuffle, keys="factor=downscale_factor"),
    "batch_norm": LayerSpec(
        features=nn.BatchNorm1d, images=nn.BatchNorm2d, keys="eps momentum affine"
    ),
    "layer_norm": LayerSpec(nn.LayerNorm, "eps affine=elementwise_affine bias"),
    "group_norm": LayerSpec(nn.GroupNorm, "groups=num_groups eps affine"),
    "instance_norm": LayerSpec(
        lines=nn.InstanceNorm1d, images=nn.InstanceNorm2d, keys="eps affine"
    ),
    "rms_norm": LayerSpec(nn.RMSNorm, "eps affine=elementwise_affine"),
    "lstm": LayerSpec(sequences=LSTMStates, keys=f"out=hidden_size {_STATES}"),
    "gru": LayerSpec(sequences=GRUStates, keys=f"out=hidden_size {_STATES}"),
    "rnn": LayerSpec(sequences=RNNStates, keys=f"out=hidden_size nonlinearity {_STATES}"),
    "positions": LayerSpec(sequences=nn.Positions),
    "attention": LayerSpec(sequences=attention),
    "transformer": LayerSpec(sequences=transformer),
    "dropout": LayerSpec(nn.Dropout),
    "dropout1d": LayerSpec(lines=nn.Dropout1d),
    "dropout2d": LayerSpec(images=nn.Dropout2d),
    "relu": LayerSpec(nn.ReLU),
    "relu6": LayerSpec(nn.ReLU6),
    "relusquared": LayerSpec(nn.ReLUSquared),
    "leaky_relu": LayerSpec(nn.LeakyReLU),
    "prelu": LayerSpec(prelu),
    "elu": LayerSpec(nn.ELU),
    "selu": LayerSpec(nn.SELU),
    "celu": LayerSpec(nn.CELU, types={"alpha": Positive}),
    "gelu": LayerSpec(nn.GELU),
    "silu": LayerSpec(nn.SiLU),
    "mish": LayerSpec(nn.Mish),
    "softplus": LayerSpec(nn.Softplus),
    "softsign": LayerSpec(nn.Softsign),
    "hardswish": LayerSpec(nn.Hardswish),
    "hardsigmoid": LayerSpec(nn.Hardsigmoid),
    "hardtanh": LayerSpec(nn.Hardtanh),
    "threshold": LayerSpec(threshold),
    "softcap": LayerSpec(nn.SoftCap),
    "tanh": LayerSpec(nn.Tanh),
    "tanhshrink": LayerSpec(nn.Tanhshrink),
    "sigmoid": LayerSpec(nn.Sigmoid),
    "logsigmoid": LayerSpec(nn.LogSigmoid),
    "softmax": _along(nn.Softmax),
    "log_softmax": _along(nn.LogSoftmax),
    "softmin": _along(nn.Softmin),
    "glu": _along(nn.GLU),
    "swiglu": _along(nn.SwiGLU),
    "identity": LayerSpec(anything=nn.Identity, keys=""),
}
