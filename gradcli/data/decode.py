"""PNG and JPEG through Pillow, which is imported only here and only when a picture is read."""

from __future__ import annotations

import io
import warnings
from importlib.util import find_spec
from typing import Any

from gradcli.data import png
from gradcli.data.foreign import kind_of
from gradcli.errors import DataError

COLORS = {"rgb": ("RGB", 3), "gray": ("L", 1)}  # Pillow's name of the mode, and its channels
MOST_PIXELS = 178_956_970  # of one picture; Pillow reads no more either


def require_pillow() -> None:
    """Say what to install where Pillow is missing."""
    if find_spec("PIL") is None:
        raise DataError(
            "image_folder reads PNG and JPEG through Pillow, which is not installed: "
            "pip install 'gradcli[images]'"
        )


def planes(data: bytes, size: int, color: str, source: str) -> bytes:
    """The picture as channels of size x size bytes.

    Its shorter side is made `size` long, bilinear, and the middle of the longer one is kept. Of 16
    bits the upper 8 are taken.
    """
    require_pillow()
    from PIL import Image

    try:
        if png.is_png(data):
            _check_pixels(*png.check_header(data), source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about damaged metadata that is not looked at
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as opened:
                _check_pixels(opened.width, opened.height, source)
                if opened.format == "PNG":
                    png.check(data)
                return planes_of(opened, size, color)
    except DataError:
        raise
    except Image.DecompressionBombError:
        raise DataError(
            f"{source}: more than {MOST_PIXELS} pixels; no more are read", code="E302"
        ) from None
    except Exception as error:  # damaged files end in anything there, from OSError to SyntaxError
        reason = _reason(error, data)
        raise DataError(
            f"{source}: not a whole PNG or JPEG picture: {reason}", code="E302"
        ) from None


def planes_of(picture: Any, size: int, color: str) -> bytes:
    """The same of a picture that Pillow has opened."""
    mode, channels = COLORS[color]
    pixels = _square(_of_bytes(picture).convert(mode), size).tobytes()
    return b"".join(pixels[channel::channels] for channel in range(channels))


def _check_pixels(width: int, height: int, source: str) -> None:
    if width * height > MOST_PIXELS:
        raise DataError(
            f"{source}: {width} x {height} pixels; at most {MOST_PIXELS} are read", code="E302"
        )


def _of_bytes(picture: Any) -> Any:
    """The picture with 8 bits a channel: Pillow makes white of every gray of 16 bits above 255.

    A PNG of 16 bits is in mode I where Pillow is older; in memory that has numbers of any range.
    """
    of_file = picture.format == "PNG"
    if picture.mode.startswith("I;16") or (picture.mode == "I" and of_file):
        return picture.convert("I").point(lambda gray: gray * (1 / 256)).convert("L")
    if of_file and picture.mode == "P":
        colors = len(picture.palette.palette) // len(picture.palette.mode)
        if picture.getextrema()[1] >= colors:
            raise ValueError("it has a colour that is not in its palette")
    return picture


def _square(picture: Any, size: int) -> Any:
    from PIL import Image

    shorter = min(picture.size)
    width, height = (max(size, round(side * size / shorter)) for side in picture.size)
    left, top = (width - size) // 2, (height - size) // 2
    resized = picture.resize((width, height), Image.Resampling.BILINEAR)
    return resized.crop((left, top, left + size, top + size))


def _reason(error: Exception, data: bytes) -> str:
    """Pillow quotes the memory address of what it could not identify."""
    if str(error).startswith("cannot identify"):
        return f"it is {kind_of(data[:64]) or 'neither'}"
    return str(error)
