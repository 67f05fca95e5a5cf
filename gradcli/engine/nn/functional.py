"""torch.nn.functional's names: the ops of the same names, which take torch's arguments."""

from __future__ import annotations

from collections.abc import Callable

from gradcli.engine.tensor import OPS, Tensor

NAMES = (
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "dropout1d",
    "dropout2d",
    "elu",
    "embedding",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "group_norm",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "kl_div",
    "l1_loss",
    "interpolate",
    "layer_norm",
    "leaky_relu",
    "linear",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool2d",
    "mish",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "poisson_nll_loss",
    "pixel_shuffle",
    "pixel_unshuffle",
    "prelu",
    "relu",
    "relu6",
    "relu_squared",
    "rms_norm",
    "rotary_embedding",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softcap",
    "softmax",
    "softmin",
    "softplus",
    "softsign",
    "swiglu",
    "tanh",
    "tanhshrink",
    "threshold",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
)
# `engine.unfold` is torch.Tensor.unfold, which is another thing.
_OTHERWISE = {"fold": "col2im", "unfold": "im2col"}


def __getattr__(name: str) -> Callable[..., Tensor]:
    """Ops by name, from the table they are declared in."""
    if name in NAMES:
        return OPS[name]
    if name in _OTHERWISE:
        return OPS[_OTHERWISE[name]]
    raise AttributeError(f"gradcli.engine.nn.functional has no '{name}'")


def __dir__() -> list[str]:
    return [*NAMES, *_OTHERWISE]
