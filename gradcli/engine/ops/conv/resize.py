"""Lines and images in another size (interpolate), and pixels traded for channels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gradcli.dataclass import dataclass
from gradcli.engine import shape as shapes
from gradcli.engine.array import Array, empty, run
from gradcli.engine.composite import function
from gradcli.engine.op import op
from gradcli.engine.ops.along import floats
from gradcli.engine.ops.conv.geometry import whole
from gradcli.engine.ops.shape.reshape import own_memory
from gradcli.engine.sample import sample, wrong
from gradcli.engine.shape import Shape
from gradcli.engine.tensor import Tensor
from gradcli.errors import OptionError, ShapeError
from gradcli.wording import quantity

Factor = float | Sequence[float] | None
# How csrc/cpu/conv/resize.h finds the position of an output; the last for align_corners.
_KINDS = {"nearest": 0, "nearest-exact": 1, "linear": 2, "bilinear": 2}
_CORNERS = 3
_DIMS = {"linear": 1, "bilinear": 2}


@dataclass(frozen=True)
class _Resize:
    """What a call of interpolate does to planes (rows, columns)."""

    kind: int
    size: Shape  # of the output: one number for lines, two for images
    steps: tuple[float, float]  # of the input, for a step of the output

    def run(self, kernel: str, x: Array, shape: Shape) -> Array:
        """Forward, or back: to an array of this shape."""
        y = empty(_image(shape), x.dtype)
        planes = x.contiguous().reshape(_image(x.shape))
        run(kernel, planes, y, sizes=(self.kind,), options=self.steps)
        return y.reshape(shape)


def _plan(
    x: Shape,
    size: object,
    scale_factor: Factor,
    mode: str,
    align_corners: bool | None,
    recompute_scale_factor: bool | None,
) -> _Resize:
    dims = len(x) - 2
    kind = _kind(mode, dims, align_corners)
    if dims not in (1, 2):
        raise ShapeError(f"interpolate: input must be (N, C, L) or (N, C, H, W), got shape {x}")
    if 0 in x[1:]:
        raise ShapeError(f"interpolate: input must not be empty, got shape {x}")
    if (size is None) == (scale_factor is None):
        raise OptionError("interpolate: give one of size and scale_factor")
    if size is not None:
        if recompute_scale_factor:
            raise OptionError("interpolate: recompute_scale_factor needs a scale_factor")
        y, scales = _each("size", size, dims), None
    else:
        scales = _each("scale_factor", scale_factor, dims)
        y = tuple(math.floor(n * s) for n, s in zip(x[2:], scales, strict=True))
    if min(y) < 1:
        raise ShapeError(f"interpolate: the output would be {y}, the input is {x}")
    scales = (None,) * dims if scales is None or recompute_scale_factor else scales
    steps = [_step(kind, n, m, s) for n, m, s in zip(x[2:], y, scales, strict=True)]
    return _Resize(kind, y, (steps[0] if dims == 2 else 1.0, steps[-1]))


def _kind(mode: str, dims: int, align_corners: bool | None) -> int:
    if mode not in _KINDS:
        raise OptionError(
            f"interpolate: mode must be one of {', '.join(map(repr, _KINDS))}, got {mode!r:.60}"
        )
    if _DIMS.get(mode, dims) != dims:
        what = "lines (N, C, L)" if mode == "linear" else "images (N, C, H, W)"
        raise OptionError(f"interpolate: mode {mode!r} is for {what}")
    if mode not in _DIMS and align_corners is not None:
        raise OptionError(f"interpolate: align_corners is for 'linear' and 'bilinear', not {mode}")
    return _CORNERS if align_corners else _KINDS[mode]


def _step(kind: int, length: int, new_length: int, scale: float | None) -> float:
    """How far the input moves for a step of the output."""
    if kind == _CORNERS:
        return (length - 1) / (new_length - 1) if new_length > 1 else 0.0
    if kind == _KINDS["linear"] and length == new_length:
        return 1.0
    return length / new_length if scale is None else 1 / scale


def _each(option: str, value: Any, dims: int) -> tuple[Any, ...]:
    """An option for each dimension, from one number for all of them or one for each."""
    description, fits = _NUMBERS[option]
    numbers = tuple(value) if isinstance(value, (tuple, list)) else (value,) * dims
    if len(numbers) != dims or not all(map(fits, numbers)):
        several = f"a pair of {description}" if dims == 2 else f"{description}, one for lines"
        raise OptionError(f"interpolate: {option} must be {several}, got {value!r:.60}")
    return numbers


def _is_scale(number: object) -> bool:
    return isinstance(number, (int, float)) and math.isfinite(number) and number > 0


_NUMBERS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "size": ("whole numbers of at least 1", lambda number: whole(number, 1)),
    "scale_factor": ("numbers above 0", _is_scale),
}


def _image(shape: Shape) -> Shape:
    """(N, C, ...) as (planes, rows, columns)."""
    rows = shape[2] if len(shape) == 4 else 1
    return (shapes.numel(shape[:2]), rows, shape[-1])


@op(
    double_backward="linear",
    samples=[
        sample((2, 3, 4, 5), scale_factor=2),
        sample((1, 2, 7, 5), size=(3, 9)),
        sample((2, 3, 6), size=4, mode="nearest-exact"),
        sample((2, 3, 6), scale_factor=2.5, mode="linear"),
        sample((2, 1, 5), size=3, mode="linear", align_corners=True),
        sample((2, 3, 4, 5), scale_factor=(2, 1.5), mode="bilinear"),
        sample((1, 2, 5, 4), size=(3, 7), mode="bilinear"),
        sample((1, 2, 3, 4), size=(7, 1), mode="bilinear", align_corners=True),
        sample((1, 1, 5, 3), scale_factor=1.3, mode="bilinear", recompute_scale_factor=True),
        sample((1, 1, 1, 1), size=3, mode="bilinear"),
        sample((0, 2, 3), size=5),
    ],
    wrong=[
        wrong(sample((2, 3), size=2), "input must be (N, C, L)"),
        wrong(sample((1, 2, 0), size=2), "input must not be empty"),
        wrong(sample((1, 2, 3)), "give one of size and scale_factor"),
        wrong(sample((1, 2, 3), size=2, scale_factor=2), "give one of size and scale_factor"),
        wrong(sample((1, 2, 3), scale_factor=0.2), "the output would be (0,)"),
        wrong(sample((1, 2, 3), scale_factor=-1), "scale_factor must be numbers above 0"),
        wrong(sample((1, 2, 3), size=(2, 2)), "size must be whole numbers"),
        wrong(sample((1, 2, 3), size=2, mode="cubic"), "mode must be one of 'nearest'"),
        wrong(sample((1, 2, 3), size=2, mode="bilinear"), "is for images (N, C, H, W)"),
        wrong(sample((1, 2, 3), size=2, align_corners=True), "align_corners is for 'linear'"),
        wrong(sample((1, 2, 3), size=2, recompute_scale_factor=True), "needs a scale_factor"),
    ],
    method=False,
)
def interpolate(
    input: Array,
    *,
    size: int | Sequence[int] | None = None,
    scale_factor: Factor = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Array:
    """Each output the nearest pixel, or on the straight lines between its neighbours."""
    floats("interpolate", input)
    how = _plan(input.shape, size, scale_factor, mode, align_corners, recompute_scale_factor)
    return how.run("resize_forward", input, (*input.shape[:2], *how.size))


@interpolate.gradient
def interpolate_gradient(grad: Array, *, shapes: tuple[Shape, ...], **options: Any) -> Array:
    """The gradient of each output to the pixels that it is made of, in the same shares."""
    how = _plan(shapes[0], **options)
    return how.run("resize_backward", grad, shapes[0])


@function(
    samples=[
        sample((1, 8, 2, 3), upscale_factor=2),
        sample((9, 1, 2), upscale_factor=3),
        sample((2, 1, 4, 1, 3), upscale_factor=2),
        sample((2, 3, 2), upscale_factor=1),
    ],
    wrong=[
        wrong(
            sample((3, 2, 2), upscale_factor=2), "3 channels of (3, 2, 2) must be a multiple of 4"
        ),
        wrong(sample((4, 4), upscale_factor=2), "input must be (..., C, H, W), got shape (4, 4)"),
        wrong(sample((4, 1, 1), upscale_factor=0), "upscale_factor must be a whole number of at"),
    ],
)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(..., C r^2, H, W) as (..., C, H r, W r): r^2 channels become the pixels of one."""
    r = _factor("pixel_shuffle", "upscale_factor", input, upscale_factor)
    *front, channels, h, w = input.shape
    if channels % (r * r):
        raise ShapeError(
            f"pixel_shuffle: the {quantity(channels, 'channel')} of {input.shape} must be a "
            f"multiple of {r * r}"
        )
    apart = input.reshape(*front, channels // (r * r), r, r, h, w)
    n = len(front)
    mixed = apart.permute(*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return own_memory(mixed.reshape(*front, channels // (r * r), h * r, w * r), input)


@function(
    samples=[
        sample((1, 2, 4, 6), downscale_factor=2),
        sample((1, 3, 6), downscale_factor=3),
        sample((2, 1, 1, 2, 6), downscale_factor=2),
        sample((2, 3, 2), downscale_factor=1),
    ],
    wrong=[
        wrong(sample((1, 3, 4), downscale_factor=2), "of (1, 3, 4) must be multiples of 2"),
        wrong(sample((4, 4), downscale_factor=2), "input must be (..., C, H, W), got shape (4, 4)"),
    ],
)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(..., C, H r, W r) as (..., C r^2, H, W): the opposite of pixel_shuffle."""
    r = _factor("pixel_unshuffle", "downscale_factor", input, downscale_factor)
    *front, channels, h, w = input.shape
    if h % r or w % r:
        raise ShapeError(
            f"pixel_unshuffle: height and width of {input.shape} must be multiples of {r}"
        )
    apart = input.reshape(*front, channels, h // r, r, w // r, r)
    n = len(front)
    mixed = apart.permute(*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return own_memory(mixed.reshape(*front, channels * r * r, h // r, w // r), input)


def _factor(op: str, name: str, x: Tensor, factor: int) -> int:
    if x.ndim < 3:
        raise ShapeError(f"{op}: input must be (..., C, H, W), got shape {x.shape}")
    if factor < 1:
        raise OptionError(f"{op}: {name} must be a whole number of at least 1, got {factor!r}")
    return factor
