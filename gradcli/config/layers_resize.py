"""Layers that give lines and images another size, without weights. See layers.py for the form."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from gradcli.config.fields import Border, Factors, Sizes
from gradcli.config.layers_window import pair
from gradcli.config.signal import Fitted, Signal, floats, image, line
from gradcli.engine.kind import Count, Finite
from gradcli.errors import ShapeError

if TYPE_CHECKING:
    from gradcli.engine import nn

Mode = Literal["nearest", "nearest-exact", "linear", "bilinear"]


def adaptiveavgpool(x: Signal, size: Sizes) -> Fitted:
    """The mean of each window of an image, of which there are `size`."""
    return _pooled(x, "AdaptiveAvgPool2d", (image(x)[0], *pair(size)))


def adaptivemaxpool(x: Signal, size: Sizes) -> Fitted:
    """The largest value of each window of an image, of which there are `size`."""
    return _pooled(x, "AdaptiveMaxPool2d", (image(x)[0], *pair(size)))


def adaptiveavgpool1d(x: Signal, size: Count) -> Fitted:
    """The mean of each window of a line, of which there are `size`."""
    return _pooled(x, "AdaptiveAvgPool1d", (line(x)[0], size))


def adaptivemaxpool1d(x: Signal, size: Count) -> Fitted:
    """The largest value of each window of a line, of which there are `size`."""
    return _pooled(x, "AdaptiveMaxPool1d", (line(x)[0], size))


def _pooled(x: Signal, kind: str, shape: tuple[int, ...]) -> Fitted:
    size = shape[1] if len(shape) == 2 else shape[1:]

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.LAYERS[kind](size)  # type: ignore[call-arg]

    return Fitted(x.to(*shape), 0, make)


def upsample(
    x: Signal,
    scale: Factors | None = None,
    *,
    size: Sizes | None = None,
    mode: Mode = "nearest",
    align_corners: bool = False,
) -> Fitted:
    """Each value the nearest one of the input, or on the straight lines between neighbours."""
    channels, *inside = floats(x).shape
    if len(inside) not in (1, 2):
        raise ShapeError(f"needs lines (channels x length) or images, got {x}")
    if (scale is None) == (size is None):
        raise ShapeError("needs one of scale and size")
    if {"linear": 1, "bilinear": 2}.get(mode, len(inside)) != len(inside):
        raise ShapeError(f"mode {mode} does not fit the input {x}")
    if align_corners and "linear" not in mode:
        raise ShapeError(f"align_corners is for linear and bilinear, not {mode}")
    wanted = _each(size, len(inside)) if size is not None else None
    factors = _each(scale, len(inside)) if scale is not None else None
    if factors is not None:
        output = [math.floor(n * f) for n, f in zip(inside, factors, strict=True)]
    else:
        output = [int(n) for n in wanted or ()]
    if min(output) < 1:
        raise ShapeError(f"the output would be {'x'.join(map(str, output))}, the input is {x}")

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.Upsample(
            None if size is None else output,
            factors,
            mode,
            align_corners if "linear" in mode else None,
        )

    return Fitted(x.to(channels, *output), 0, make)


def _each(value: object, dims: int) -> tuple[float, ...]:
    """One number for each direction."""
    given = value if isinstance(value, tuple) else (value,) * dims
    if len(given) != dims:
        raise ShapeError("a line has one size, not two")
    return tuple(n for n in given if isinstance(n, (int, float)))


def pad(
    x: Signal,
    size: Border,
    *,
    mode: Literal["constant", "reflect", "replicate", "circular"] = "constant",
    value: Finite = 0.0,
) -> Fitted:
    """More around a line or an image: one value, its mirror image, its edge, or its other end."""
    channels, *inside = floats(x).shape
    if len(inside) not in (1, 2):
        raise ShapeError(f"needs lines (channels x length) or images, got {x}")
    sides = size if isinstance(size, tuple) else (size,) * (2 * len(inside))
    if len(sides) != 2 * len(inside):
        raise ShapeError(f"size has {2 * len(inside)} numbers for the input {x}, got {len(sides)}")
    if value and mode != "constant":
        raise ShapeError(f"value is for constant, not {mode}")
    # The last direction stands first: left, right, top, bottom.
    pairs = [sides[i : i + 2] for i in range(0, len(sides), 2)][::-1]
    for length, pair_ in zip(inside, pairs, strict=True):
        most = {"reflect": length - 1, "circular": length}.get(mode, max(pair_))
        if max(pair_) > most:
            raise ShapeError(f"{mode} adds at most {most} to {length}, got {max(pair_)}")
    output = [n + sum(p) for n, p in zip(inside, pairs, strict=True)]

    def make() -> nn.Module:
        from gradcli.engine import nn

        kind = f"{_PADS[mode]}Pad{len(inside)}d"
        return nn.LAYERS[kind](sides, *([value] if mode == "constant" else []))  # type: ignore[call-arg]

    return Fitted(x.to(channels, *output), 0, make)


_PADS = {
    "constant": "Constant",
    "reflect": "Reflection",
    "replicate": "Replication",
    "circular": "Circular",
}


def pixelshuffle(x: Signal, factor: Count) -> Fitted:
    """factor^2 channels become the pixels of one, in an image `factor` times as large."""
    channels, height, width = image(x)
    if channels % factor**2:
        raise ShapeError(f"{factor}^2 does not divide the {channels} channels of {x}")

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.PixelShuffle(factor)

    return Fitted(x.to(channels // factor**2, height * factor, width * factor), 0, make)


def pixelunshuffle(x: Signal, factor: Count) -> Fitted:
    """The opposite of pixelshuffle: an image smaller by `factor`, with factor^2 the channels."""
    channels, height, width = image(x)
    if height % factor or width % factor:
        raise ShapeError(f"factor {factor} does not divide height and width of {x}")

    def make() -> nn.Module:
        from gradcli.engine import nn

        return nn.PixelUnshuffle(factor)

    return Fitted(x.to(channels * factor**2, height // factor, width // factor), 0, make)
