"""Upsample, PixelShuffle and PixelUnshuffle: lines and images in another size."""

from __future__ import annotations

__all__ = ["Upsample", "PixelShuffle", "PixelUnshuffle"]

from collections.abc import Sequence

from gradcli.engine.kind import Count
from gradcli.engine.nn import functional as F
from gradcli.engine.nn.module import Module
from gradcli.engine.ops.conv.resize import Factor
from gradcli.engine.tensor import Tensor


class Upsample(Module):
    """Each output the nearest pixel, or on the straight lines between its neighbours."""

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: Factor = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = size
        self.scale_factor: Factor
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = (
                float(scale_factor) if isinstance(scale_factor, int) else scale_factor
            )
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(N, C, L) or (N, C, H, W) in another size."""
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        """As torch shows it."""
        what = "size" if self.scale_factor is None else "scale_factor"
        return f"{what}={getattr(self, what)!r}, mode={self.mode!r}"


class PixelShuffle(Module):
    """Rearranges r^2 channels into the pixels of one: r = upscale_factor (Shi et al. 2016)."""

    _repr_format = "upscale_factor={0.upscale_factor}"

    def __init__(self, upscale_factor: Count) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(..., C r^2, H, W) to (..., C, H r, W r)."""
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    """The inverse of PixelShuffle."""

    _repr_format = "downscale_factor={0.downscale_factor}"

    def __init__(self, downscale_factor: Count) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """(..., C, H r, W r) to (..., C r^2, H, W)."""
        return F.pixel_unshuffle(input, self.downscale_factor)
