"""Pictures through Pillow, which is imported only here and only when a picture is read."""

from __future__ import annotations

import io
import threading
import warnings
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any

from gradcli.data import image_formats, jpeg, modes, png
from gradcli.data.inflate import BOMB_RATIO, BOMB_SIZE
from gradcli.dataclass import dataclass
from gradcli.errors import DataError
from gradcli.wording import quantity

COLORS = {"rgb": ("RGB", 3), "gray": ("L", 1)}  # Pillow's name of the mode, and its channels
MOST_PIXELS = 178_956_970  # of one picture; Pillow reads no more either
_RESIZED = 1 << 22  # pixels of a resized picture, before its middle is cut out
_LARGE = threading.Lock()  # of large pictures one is unpacked at a time


@dataclass(frozen=True)
class DecodedImage:
    """A picture as channels of size x size bytes, and what of the file is not in them."""

    planes: bytes
    losses: tuple[str, ...] = ()


def require_pillow() -> None:
    """Say what to install where Pillow is missing."""
    if find_spec("PIL") is None:
        raise DataError(
            "image_folder reads pictures through Pillow, which is not installed: "
            "pip install 'gradcli[images]'"
        )


def planes(data: bytes, size: int, color: str, source: str) -> bytes:
    """The channels of a picture in a file; see `decode_image`."""
    return decode_image(data, size, color, source).planes


def decode_image(data: bytes, size: int, color: str, source: str) -> DecodedImage:
    """A picture from the bytes of a file in one of the FORMATS; `source` names it in errors.

    It is rotated to its EXIF orientation, resized (bilinear) to `size` on its shorter side, and
    cropped to the middle of the longer one. Of 16 bits the upper 8 count, of an animation the
    first picture.
    """
    require_pillow()
    from PIL import Image

    try:
        if png.is_png(data):
            _check_pixels(*png.check_header(data), source)
        elif sides := image_formats.sides_before_opening(data):
            _check_sides(*sides, 4, data, source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about damaged metadata, which is not read
            with Image.open(io.BytesIO(data), formats=image_formats.FORMATS) as image:
                return _of_file(image, data, size, color, source)
    except DataError:
        raise
    except Image.DecompressionBombError:
        raise DataError(
            f"{source}: more than {MOST_PIXELS} pixels; no more are read", code="E302"
        ) from None
    except Exception as error:  # damaged files raise anything, from OSError to SyntaxError
        what = f"not a whole {image_formats.NAMES} picture: {_reason(error, data)}"
        raise DataError(f"{source}: {what}", code="E302") from None


def _of_file(image: Any, data: bytes, size: int, color: str, source: str) -> DecodedImage:
    numbers = 1 if image.mode in modes.GRAYS else 4
    unpacked = _check_sides(image.width, image.height, numbers, data, source)
    with _LARGE if unpacked > BOMB_SIZE else nullcontext():
        bits = 8
        if image.format == "PNG":
            png.check(data)
            bits = png.bits_of(data)
        elif image.format == "JPEG":
            jpeg.check(data)
        return DecodedImage(_planes(image, size, color), modes.losses(image, bits))


def planes_of(image: Any, size: int, color: str, source: str = "the picture") -> bytes:
    """The channels of a picture that Pillow has opened."""
    try:
        return _planes(image, size, color)
    except (ValueError, OSError) as error:
        raise DataError(f"{source}: a picture that is not read: {error}", code="E302") from None


def _planes(image: Any, size: int, color: str) -> bytes:
    mode, channels = COLORS[color]
    of_png = image.format == "PNG"
    plain = modes.of_bytes(_middle(modes.upright(image), size), mode, of_png=of_png)
    pixels = _square(plain, size).convert(mode).tobytes()
    return b"".join(pixels[channel::channels] for channel in range(channels))


def _check_pixels(width: int, height: int, source: str) -> None:
    if width * height > MOST_PIXELS:
        raise DataError(
            f"{source}: {quantity(f'{width} x {height}', 'pixel')}; at most {MOST_PIXELS} are read",
            code="E302",
        )


def _check_sides(width: int, height: int, numbers: int, data: bytes, source: str) -> int:
    """The bytes of a picture of so many numbers a pixel, unless its file is too small for them."""
    _check_pixels(width, height, source)
    unpacked = width * height * numbers
    if unpacked > max(BOMB_SIZE, BOMB_RATIO * len(data)):
        pixels = quantity(f"{width} x {height}", "pixel")
        raise DataError(
            f"{source}: {pixels} unpack to {quantity(unpacked, 'byte')}, more "
            f"than {BOMB_RATIO} for each of the file's {len(data)}; save it smaller",
            code="E302",
        )
    return unpacked


def _middle(image: Any, size: int) -> Any:
    """Of a very long picture the stretch in the middle, from which the square will be cut.

    One of 1 x 20,000 pixels would otherwise be resized to 224 x 4,480,000 before that.
    """
    longest = min(image.size) * max(4, _RESIZED // size**2)
    if max(image.size) <= longest:
        return image
    width, height = (min(side, longest) for side in image.size)
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return image.crop((left, top, left + width, top + height))


def _square(image: Any, size: int) -> Any:
    from PIL import Image

    shorter = min(image.size)
    width, height = (max(size, round(side * size / shorter)) for side in image.size)
    left, top = (width - size) // 2, (height - size) // 2
    resized = image.resize((width, height), Image.Resampling.BILINEAR)
    return resized.crop((left, top, left + size, top + size))


def _reason(error: Exception, data: bytes) -> str:
    """Pillow quotes the memory address of what it could not identify."""
    unknown = str(error).startswith("cannot identify")
    return image_formats.unknown(data) if unknown else str(error)
