"""Layers that normalise, and dropout of whole channels. See layers.py for the form."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gradcli.config.signal import Fitted, Signal, floats, image, line
from gradcli.engine.kind import Count, Portion, Positive, Share
from gradcli.errors import ShapeError

if TYPE_CHECKING:
    from gradcli.engine import nn


def batchnorm(x: Signal, *, eps: Positive = 1e-5, momentum: Portion = 0.1) -> Fitted:
    """Mean 0 and variance 1 of each channel over the batch; then a learnt scale and shift."""
    if len(floats(x).shape) not in (1, 3):
        raise ShapeError(f"needs features or images (channels x height x width), got {x}")
    flat, channels = len(x.shape) == 1, x.shape[0]

    def make() -> nn.Module:
        from gradcli.engine import nn

        kind = nn.BatchNorm1d if flat else nn.BatchNorm2d
        return kind(channels, eps=eps, momentum=momentum)

    return Fitted(x, 2 * channels, make)


def groupnorm(x: Signal, groups: Count, *, eps: Positive = 1e-5) -> Fitted:
    """Mean 0 and variance 1 of each group of channels; then a scale and shift a channel."""
    channels = floats(x).shape[0]
    if channels % groups:
        raise ShapeError(f"groups {groups} does not divide the {channels} channels")

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.GroupNorm(groups, channels, eps=eps)

    return Fitted(x, 2 * channels, make)


def instancenorm(x: Signal, *, eps: Positive = 1e-5, affine: bool = False) -> Fitted:
    """Mean 0 and variance 1 of each channel of each sample; with `affine` a scale and shift."""
    if len(floats(x).shape) not in (2, 3):
        raise ShapeError(f"needs lines (channels x length) or images, got {x}")
    channels, *inside = x.shape
    if math.prod(inside) == 1:
        raise ShapeError(f"one value a channel has no variance: the input is {x}")
    flat = len(inside) == 1

    def make() -> nn.Module:
        from gradcli.engine import nn

        kind = nn.InstanceNorm1d if flat else nn.InstanceNorm2d
        return kind(channels, eps=eps, affine=affine)

    return Fitted(x, 2 * channels if affine else 0, make)


def rmsnorm(x: Signal, *, eps: Positive | None = None) -> Fitted:
    """Mean square 1 over the last dimension (of images: all three); then a learnt scale."""
    shape = floats(x).shape
    over = shape if len(shape) == 3 else shape[-1:]

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.RMSNorm(over, eps=eps)

    return Fitted(x, math.prod(over), make)


def dropout1d(x: Signal, p: Share = 0.5) -> Fitted:
    """Zero each whole channel of a line with probability `p`; scale the rest by 1 / (1 - p)."""
    line(x)

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.Dropout1d(p)

    return Fitted(x, 0, make)


def dropout2d(x: Signal, p: Share = 0.5) -> Fitted:
    """Zero each whole channel of an image with probability `p`; scale the rest by 1 / (1 - p)."""
    image(x)

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.Dropout2d(p)

    return Fitted(x, 0, make)
