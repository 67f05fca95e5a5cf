"""Conv2d: a filter bank slid over images."""

from __future__ import annotations

from gradcli.engine import dtype as dtypes
from gradcli.engine.dtype import DType
from gradcli.engine.nn import functional as F
from gradcli.engine.nn import init
from gradcli.engine.nn.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.ops.creation import empty
from gradcli.engine.ops.window import Pair, pair
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError


def _padding(padding: Pair | str, stride: tuple[int, int]) -> tuple[int, int] | str:
    if not isinstance(padding, str):
        return pair("Conv2d", "padding", padding, 0)
    if padding not in ("same", "valid"):
        raise OptionError(f"Conv2d: padding must be 'same', 'valid' or numbers, got {padding!r}")
    if padding == "same" and stride != (1, 1):
        raise OptionError(f"Conv2d: padding 'same' needs stride 1, got {stride}")
    return padding


class Conv2d(Module):
    """Cross-correlation of (N, C, H, W) with out_channels filters, plus bias.

    `padding` is a number, a pair, "valid" (none) or "same" (the output is as large as the input;
    stride 1 only).
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Pair,
        stride: Pair = 1,
        padding: Pair | str = 0,
        dilation: Pair = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        super().__init__()
        if (
            not isinstance(groups, int)
            or groups < 1
            or in_channels % groups
            or out_channels % groups
        ):
            raise OptionError(
                f"Conv2d: groups={groups} must divide in_channels={in_channels} and "
                f"out_channels={out_channels}"
            )
        if padding_mode != "zeros":
            raise OptionError(f"Conv2d: padding_mode must be 'zeros', got {padding_mode!r}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = pair("Conv2d", "kernel_size", kernel_size)
        self.stride = pair("Conv2d", "stride", stride)
        self.padding = _padding(padding, self.stride)
        self.dilation = pair("Conv2d", "dilation", dilation)
        self.groups = groups
        size = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(empty(size, dtype=dtype))
        self.register_parameter("bias", None)
        if bias:
            self.bias = Parameter(empty(out_channels, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight and bias evenly spread within 1 / sqrt(inputs of one output)."""
        init.weight_and_bias_(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """The filtered images."""
        return F.conv2d(
            input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )

    def extra_repr(self) -> str:
        """As torch shows it: options at their defaults are left out."""
        parts = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}, stride={self.stride}",
        ]
        if self.padding != (0, 0):
            parts.append(f"padding={self.padding}")
        if self.dilation != (1, 1):
            parts.append(f"dilation={self.dilation}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        return ", ".join(parts)
