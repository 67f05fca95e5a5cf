"""PNG and JPEG through Pillow, which is imported only here and only when a picture is read."""

from __future__ import annotations

import io
import warnings
from importlib.util import find_spec
from typing import Any

from gradcli.errors import DataError

COLORS = {"rgb": ("RGB", 3), "gray": ("L", 1)}  # Pillow's name of the mode, and its channels
MOST_PIXELS = 1 << 28  # of one picture


def require_pillow() -> None:
    """Say what to install where Pillow is missing."""
    if find_spec("PIL") is None:
        raise DataError(
            "image_folder reads PNG and JPEG through Pillow, which is not installed: "
            "pip install 'gradcli[images]'"
        )


def planes(data: bytes, size: int, color: str, source: str) -> bytes:
    """The picture as channels of size x size bytes.

    Its shorter side is made `size` long, bilinear, and the middle of the longer one is kept.
    """
    require_pillow()
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about damaged metadata that is not looked at
            with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as opened:
                if opened.width * opened.height > MOST_PIXELS:
                    raise DataError(
                        f"{source}: {opened.width} x {opened.height} pixels; at most {MOST_PIXELS} "
                        "are read",
                        code="E302",
                    )
                picture = _square(opened.convert(COLORS[color][0]), size)
                pixels = picture.tobytes()
    except DataError:
        raise
    except Exception as error:  # damaged files end in anything there, from OSError to SyntaxError
        raise DataError(
            f"{source}: not a whole PNG or JPEG picture: {_shortened(str(error))}", code="E302"
        ) from None
    channels = COLORS[color][1]
    return b"".join(pixels[channel::channels] for channel in range(channels))


def _square(picture: Any, size: int) -> Any:
    from PIL import Image

    shorter = min(picture.size)
    width, height = (max(size, round(side * size / shorter)) for side in picture.size)
    left, top = (width - size) // 2, (height - size) // 2
    resized = picture.resize((width, height), Image.Resampling.BILINEAR)
    return resized.crop((left, top, left + size, top + size))


def _shortened(text: str) -> str:
    """Pillow quotes the memory address of what it could not identify."""
    return "it is neither" if text.startswith("cannot identify") else text
