"""Convolution layers: filter banks slid over lines and images, and the same transposed."""

from __future__ import annotations

__all__ = ["Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d"]

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from gradcli.engine import dtype as dtypes
from gradcli.engine.dtype import DType
from gradcli.engine.kind import Count, Whole
from gradcli.engine.nn import functional as F
from gradcli.engine.nn.linear import Affine
from gradcli.engine.ops.conv.geometry import Geometry, PerDim, Space
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError


class _Conv(Affine):
    """What convolutions and transposed ones share: the weight, the bias and the sizes."""

    dims: ClassVar[int]
    convolve: ClassVar[Callable[..., Any]]
    padding_modes: ClassVar[tuple[str, ...]] = ("zeros",)
    padding: Shape | str

    def __init__(
        self,
        channels: tuple[Whole, Whole],
        kernel_size: PerDim,
        stride: PerDim,
        padding: PerDim | str,
        dilation: PerDim,
        groups: Count,
        padding_mode: str,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = channels
        if any(count % groups for count in channels):
            raise OptionError(
                f"{type(self).__name__}: groups={groups} must divide in_channels="
                f"{self.in_channels} and out_channels={self.out_channels}"
            )
        if padding_mode not in self.padding_modes:
            modes = " or ".join(map(repr, self.padding_modes))
            raise OptionError(
                f"{type(self).__name__}: padding_mode must be {modes}, got {padding_mode!r:.60}"
            )
        self.kernel_size = self._space.numbers("kernel_size", kernel_size)
        self.stride = self._space.numbers("stride", stride)
        self.padding = (
            padding if isinstance(padding, str) else self._space.numbers("padding", padding, 0)
        )
        self.dilation = self._space.numbers("dilation", dilation)
        self.output_padding: Shape = (0,) * self.dims
        self.groups = groups
        self.padding_mode = padding_mode

    @property
    def _space(self) -> Space:
        return Space(type(self).__name__, self.dims)

    def _geometry(self) -> Geometry:
        return self._space.geometry(self.kernel_size, self.stride, self.padding, self.dilation)

    def extra_repr(self) -> str:
        """As torch shows it: options at their defaults are left out."""
        nothing = (0,) * self.dims
        parts = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}, stride={self.stride}",
        ]
        for name, default in (
            ("padding", nothing),
            ("dilation", (1,) * self.dims),
            ("output_padding", nothing),
            ("groups", 1),
        ):
            if getattr(self, name) != default:
                parts.append(f"{name}={getattr(self, name)}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Straight(_Conv):
    """A convolution. `padding` is a number or one for each direction, "valid" or "same".

    What lies there is said by `padding_mode`: zeros, reflect, replicate or circular.
    """

    padding_modes = ("zeros", "reflect", "replicate", "circular")

    def __init__(
        self,
        in_channels: Whole,
        out_channels: Whole,
        kernel_size: PerDim,
        stride: PerDim = 1,
        padding: PerDim | str = 0,
        dilation: PerDim = 1,
        groups: Count = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        channels = in_channels, out_channels
        super().__init__(channels, kernel_size, stride, padding, dilation, groups, padding_mode)
        self._geometry()  # refuses words that are no padding
        weight = (out_channels, in_channels // groups, *self.kernel_size)
        self._make(weight, out_channels, bias, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """What the filters give at each place."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._borders(), self.padding_mode), (0,) * self.dims
        options = (self.stride, padding, self.dilation, self.groups)
        y: Tensor = self.convolve(input, self.weight, self.bias, *options)
        return y

    def _borders(self) -> list[int]:
        """The padding in front and behind, of the last direction first, as F.pad wants it."""
        geometry = self._geometry()
        sides = zip(reversed(geometry.padding), reversed(geometry.behind), strict=True)
        return [count for pair in sides for count in pair]


class Conv1d(_Straight):
    """Cross-correlation of (N, C, L) with out_channels filters, plus bias.

    `padding` is a number, "valid" (none) or "same" (the output is as long as the input; stride 1
    only).
    """

    dims, convolve = 1, staticmethod(F.conv1d)


class Conv2d(_Straight):
    """Cross-correlation of (N, C, H, W) with out_channels filters, plus bias.

    `padding` is a number, a pair, "valid" (none) or "same" (the output is as large as the input;
    stride 1 only).
    """

    dims, convolve = 2, staticmethod(F.conv2d)


class _Transposed(_Conv):
    """A transposed convolution, which undoes the shapes of a convolution of the same options."""

    def __init__(
        self,
        in_channels: Whole,
        out_channels: Whole,
        kernel_size: PerDim,
        stride: PerDim = 1,
        padding: PerDim = 0,
        output_padding: PerDim = 0,
        groups: Count = 1,
        bias: bool = True,
        dilation: PerDim = 1,
        padding_mode: str = "zeros",
        *,
        dtype: DType = dtypes.float32,
    ) -> None:
        channels = in_channels, out_channels
        super().__init__(channels, kernel_size, stride, padding, dilation, groups, padding_mode)
        self.output_padding = self._space.numbers("output_padding", output_padding, 0)
        weight = (in_channels, out_channels // groups, *self.kernel_size)
        self._make(weight, out_channels, bias, dtype)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Each number times each filter; `output_size` chooses among the sizes a stride allows."""
        more = self.output_padding if output_size is None else self._missing(input, output_size)
        assert not isinstance(self.padding, str)
        options = (self.stride, self.padding, more, self.groups, self.dilation)
        y: Tensor = self.convolve(input, self.weight, self.bias, *options)
        return y

    def _missing(self, input: Tensor, output_size: Sequence[int]) -> Shape:
        """The output_padding that gives `output_size`."""
        assert not isinstance(self.padding, str)
        sizes = tuple(output_size)[-self.dims :]
        least = self._geometry().spans(input.shape[-self.dims :])
        most = tuple(low + step - 1 for low, step in zip(least, self.stride, strict=True))
        if len(sizes) != self.dims or any(
            not low <= size <= high for low, size, high in zip(least, sizes, most, strict=True)
        ):
            raise ShapeError(
                f"{type(self).__name__}: output_size {tuple(output_size)} must be from {least} to "
                f"{most} for input {input.shape}"
            )
        return tuple(size - low for size, low in zip(sizes, least, strict=True))


class ConvTranspose1d(_Transposed):
    """Each number of (N, C, L) times out_channels filters, placed `stride` apart and summed."""

    dims, convolve = 1, staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_Transposed):
    """Each pixel of (N, C, H, W) times out_channels filters, placed `stride` apart and summed."""

    dims, convolve = 2, staticmethod(F.conv_transpose2d)
