"""torch.nn.functional's names: the ops of the same names, which take torch's arguments."""

from __future__ import annotations

from collections.abc import Callable

from gradcli.engine.tensor import OPS, Tensor

NAMES = (
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "bilinear",
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "cross_entropy",
    "dropout",
    "dropout1d",
    "dropout2d",
    "embedding",
    "gelu",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "leaky_relu",
    "linear",
    "local_response_norm",
    "log_softmax",
    "max_pool1d",
    "max_pool2d",
    "mse_loss",
    "nll_loss",
    "normalize",
    "relu",
    "rms_norm",
    "rotary_embedding",
    "scaled_dot_product_attention",
    "sigmoid",
    "softmax",
    "tanh",
)


def __getattr__(name: str) -> Callable[..., Tensor]:
    """Ops by name, from the table they are declared in."""
    if name in NAMES:
        return OPS[name]
    raise AttributeError(f"gradcli.engine.nn.functional has no '{name}'")


def __dir__() -> list[str]:
    return list(NAMES)
