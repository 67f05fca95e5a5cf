"""torch.nn.functional's names. What is not written out here is the op of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.nn.pair import Pair, pair
from gradcli.engine.tensor import OPS, Tensor
from gradcli.errors import OptionError, ShapeError

OPS_HERE = (
    "avg_pool2d",
    "batch_norm",
    "cross_entropy",
    "dropout",
    "embedding",
    "gelu",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "max_pool2d",
    "mse_loss",
    "relu",
    "sigmoid",
    "softmax",
    "tanh",
)


def __getattr__(name: str) -> Callable[..., Tensor]:
    """Ops by name, from the table they are declared in."""
    if name in OPS_HERE:
        return OPS[name]
    raise AttributeError(f"gradcli.engine.nn.functional has no '{name}'")


def check_padding_name(padding: str, stride: tuple[int, int]) -> None:
    """Refuse what is neither "valid" nor "same", and "same" with steps."""
    if padding not in ("valid", "same"):
        raise OptionError(f"conv2d: padding must be numbers, 'valid' or 'same', got {padding!r}")
    if padding == "same" and stride != (1, 1):
        raise OptionError(f"conv2d: padding 'same' needs stride 1, got {stride}")


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Pair = 1,
    padding: Pair | str = 0,
    dilation: Pair = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation of (N, C, H, W) with filters (out, C / groups, kh, kw), plus bias."""
    options: dict[str, Any] = {"stride": stride, "dilation": dilation, "groups": groups}
    if not isinstance(padding, str):
        return _op("conv2d", input, weight, bias, padding=padding, **options)
    check_padding_name(padding, pair(stride, "conv2d: stride", 1))
    if padding == "valid":
        return _op("conv2d", input, weight, bias, padding=0, **options)
    steps = pair(dilation, "conv2d: dilation", 1)
    if weight.ndim != 4:
        raise ShapeError(f"conv2d: weight must have 4 dimensions, got shape {weight.shape}")
    around = [d * (k - 1) for d, k in zip(steps, weight.shape[2:], strict=True)]
    # An odd sum has one more row after than before: pad more on both sides, drop the first row.
    wide = tuple((total + 1) // 2 for total in around)
    result = _op("conv2d", input, weight, bias, padding=wide, **options)
    if any(total % 2 for total in around):
        result = result[..., around[0] % 2 :, around[1] % 2 :]
    return result


def _op(name: str, *inputs: Any, **options: Any) -> Tensor:
    result: Tensor = OPS[name](*inputs, **options)
    return result
