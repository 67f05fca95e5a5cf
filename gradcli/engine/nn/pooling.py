"""Pooling layers: one number for each window of a line or an image."""

from __future__ import annotations

__all__ = [
    "MaxPool1d",
    "MaxPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
]

from collections.abc import Callable
from typing import Any, ClassVar

from gradcli.engine.nn import functional as F
from gradcli.engine.nn.module import Module
from gradcli.engine.ops.conv.geometry import PerDim
from gradcli.engine.ops.conv.pool_adaptive import OutputSize
from gradcli.engine.tensor import Tensor

Pool = Callable[..., Any]
_REPR_FORMAT = "kernel_size={0.kernel_size}, stride={0.stride}, padding={0.padding}"


class _MaxPool(Module):
    """The largest number of each window; windows do not overlap unless `stride` says so."""

    pool: ClassVar[Pool]
    _repr_format = _REPR_FORMAT + ", dilation={0.dilation}, ceil_mode={0.ceil_mode}"

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

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """(N, C, L) to (N, C, windows), (N, C, H, W) to (N, C, windows down, windows across)."""
        y: Tensor | tuple[Tensor, Tensor]
        options = self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        y = self.pool(input, *options, self.return_indices)
        return y


class MaxPool1d(_MaxPool):
    """The largest number of each window; windows do not overlap unless `stride` says so."""

    pool = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest pixel of each window; windows do not overlap unless `stride` says so."""

    pool = staticmethod(F.max_pool2d)


class _AvgPool(Module):
    """The mean of each window; padded zeros count unless count_include_pad is False."""

    pool: ClassVar[Pool]
    _repr_format = _REPR_FORMAT

    def __init__(
        self,
        kernel_size: PerDim,
        stride: PerDim | None = None,
        padding: PerDim = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = self._sized(kernel_size)
        self.stride = self.kernel_size if stride is None else self._sized(stride)
        self.padding = self._sized(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def _sized(self, numbers: PerDim) -> PerDim:
        """An option as torch shows it."""
        return numbers

    def _options(self) -> tuple[Any, ...]:
        """Those of the pool, in its order."""
        counting = self.ceil_mode, self.count_include_pad
        return (self.kernel_size, self.stride, self.padding, *counting)

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, L) to (N, C, windows), (N, C, H, W) to (N, C, windows down, windows across)."""
        y: Tensor = self.pool(input, *self._options())
        return y


class AvgPool1d(_AvgPool):
    """The mean of each window; padded zeros count unless count_include_pad is False."""

    pool = staticmethod(F.avg_pool1d)

    def _sized(self, numbers: PerDim) -> PerDim:
        return (numbers,) if isinstance(numbers, int) else numbers


class AvgPool2d(_AvgPool):
    """The mean of each window; padded zeros count unless count_include_pad is False."""

    pool = staticmethod(F.avg_pool2d)

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

    def _options(self) -> tuple[Any, ...]:
        return (*super()._options(), self.divisor_override)


class _Adaptive(Module):
    """A pool of which the number of windows is given, and their size follows from the input."""

    pool: ClassVar[Pool]
    _repr_format = "output_size={0.output_size}"

    def __init__(self, output_size: OutputSize) -> None:
        super().__init__()
        self.output_size = output_size


class _AdaptiveAvg(_Adaptive):
    def forward(self, input: Tensor) -> Tensor:
        """(N, C, L) to (N, C, windows), (N, C, H, W) to (N, C, windows down, windows across)."""
        y: Tensor = self.pool(input, self.output_size)
        return y


class _AdaptiveMax(_Adaptive):
    def __init__(self, output_size: OutputSize, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """(N, C, L) to (N, C, windows), (N, C, H, W) to (N, C, windows down, windows across)."""
        y: Tensor | tuple[Tensor, Tensor]
        y = self.pool(input, self.output_size, self.return_indices)
        return y


class AdaptiveAvgPool1d(_AdaptiveAvg):
    """The mean of each of `output_size` windows of a line."""

    pool = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvg):
    """The mean of each of `output_size` windows of an image; None keeps the size of a dimension."""

    pool = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The largest number of each of `output_size` windows of a line."""

    pool = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The largest pixel of each of `output_size` windows of an image; None keeps a size."""

    pool = staticmethod(F.adaptive_max_pool2d)
