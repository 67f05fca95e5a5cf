"""Pooling layers: one number for each window of a line or an image."""

from __future__ import annotations

from gradcli.engine.nn import functional as F
from gradcli.engine.nn.module import Module
from gradcli.engine.ops.conv.geometry import PerDim
from gradcli.engine.ops.conv.pool_adaptive import OutputSize
from gradcli.engine.tensor import Tensor


class _MaxPool(Module):
    """The largest number of each window; windows do not overlap unless `stride` says so."""

    def __init__(
        self,
        kernel_size: PerDim,
        stride: PerDim | None = None,
        padding: PerDim = 0,
        dilation: PerDim = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        """As torch shows it."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest number of each window; windows do not overlap unless `stride` says so."""

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """(N, C, L) to (N, C, windows)."""
        return F.max_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class MaxPool2d(_MaxPool):
    """The largest pixel of each window; windows do not overlap unless `stride` says so."""

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """(N, C, H, W) to (N, C, windows down, windows across)."""
        return F.max_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class _AvgPool(Module):
    """The mean of each window; padded zeros count unless count_include_pad is False."""

    def __init__(
        self,
        kernel_size: PerDim,
        stride: PerDim | None = None,
        padding: PerDim = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def extra_repr(self) -> str:
        """As torch shows it."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """The mean of each window; padded zeros count unless count_include_pad is False."""

    def __init__(
        self,
        kernel_size: PerDim,
        stride: PerDim | None = None,
        padding: PerDim = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        for name in ("kernel_size", "stride", "padding"):  # torch shows one as a tuple
            value = getattr(self, name)
            setattr(self, name, (value,) if isinstance(value, int) else value)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, L) to (N, C, windows)."""
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class AvgPool2d(_AvgPool):
    """The mean of each window; padded zeros count unless count_include_pad is False."""

    def __init__(
        self,
        kernel_size: PerDim,
        stride: PerDim | None = None,
        padding: PerDim = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) to (N, C, windows down, windows across)."""
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class _Adaptive(Module):
    """A pool of which the number of windows is given, and their size follows from the input."""

    def __init__(self, output_size: OutputSize) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        """As torch shows it."""
        return f"output_size={self.output_size}"


class _AdaptiveMax(_Adaptive):
    def __init__(self, output_size: OutputSize, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices


class AdaptiveAvgPool1d(_Adaptive):
    """The mean of each of `output_size` windows of a line."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, L) to (N, C, output_size)."""
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_Adaptive):
    """The mean of each of as many windows of an image as wanted; None keeps a size."""

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, H, W) to (N, C, windows down, windows across)."""
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The largest number of each of `output_size` windows of a line."""

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """(N, C, L) to (N, C, output_size)."""
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The largest pixel of each of as many windows of an image as wanted; None keeps a size."""

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """(N, C, H, W) to (N, C, windows down, windows across)."""
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)
