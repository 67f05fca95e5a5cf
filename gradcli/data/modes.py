"""Pictures of every kind as 8 bits a channel in gray or RGB, and what is lost on the way."""

from __future__ import annotations

from typing import Any

GRAYS = ("1", "L", "LA")  # of Pillow's modes, those whose colour is one number
# Modes of which Pillow knows the way to gray and to RGB.
_COLORS = ("P", "PA", "RGB", "RGBA", "RGBX", "RGBa", "CMYK", "YCbCr", "HSV", "LAB")
_ORIENTATION = 0x0112  # of Exif; 1 is upright
# What brings the others upright, by the name of Pillow's method.
_TURNS = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}

SIXTEEN_BITS = "of 16 bits, of which the upper 8 are taken"
TRANSPARENT = "transparent in places, where the colour behind is taken as it is stored"
ANIMATED = "animated, of which the first picture is taken"
INKS = "of printing inks (CMYK), turned into RGB without a colour profile"


def of_bytes(image: Any, mode: str, *, of_png: bool) -> Any:
    """A picture in the mode "L" or "RGB"; a gray one stays "L".

    Pillow makes white of every gray of 16 bits above 255, so those are divided here. A PNG of 16
    bits is in mode I where Pillow is older; in memory that has numbers of any range.
    """
    if image.mode.startswith("I;16") or (image.mode == "I" and of_png):
        return image.convert("I").point(lambda gray: gray * (1 / 256)).convert("L")
    if image.mode == "I" and all(0 <= gray <= 255 for gray in image.getextrema()):
        return image.convert("L")
    if image.mode not in (*GRAYS, *_COLORS):
        raise ValueError(f"its mode is {image.mode}, whose numbers are no 0..255; convert it")
    if of_png and image.mode == "P":
        colors = len(image.palette.palette) // len(image.palette.mode)
        if image.getextrema()[1] >= colors:
            raise ValueError("it has a colour that is not in its palette")
    into = "L" if image.mode in GRAYS else mode
    return image if image.mode == into else image.convert(into)


def losses(image: Any, bits: int) -> tuple[str, ...]:
    """What of an opened file is not in its gray or RGB of 8 bits; `bits` are those of a channel."""
    there = {
        SIXTEEN_BITS: bits == 16,
        TRANSPARENT: _is_transparent(image),
        ANIMATED: image.format in ("GIF", "WEBP") and _is_animated(image),
        INKS: image.mode == "CMYK",
    }
    return tuple(loss for loss, is_there in there.items() if is_there)


def _is_transparent(image: Any) -> bool:
    if "A" in image.getbands():
        return bool(image.getchannel("A").getextrema()[0] < 255)
    return "transparency" in image.info


def _is_animated(image: Any) -> bool:
    try:
        return bool(image.is_animated)
    except Exception:  # damage behind the first picture does not matter
        return True


def upright(image: Any) -> Any:
    """A picture turned or mirrored as its mark of orientation says."""
    image.load()  # a mark may stand behind the pixels
    try:
        turn = _TURNS.get(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # damaged metadata harm no pixels, and are not read otherwise
        return image
    if turn is None:
        return image
    from PIL import Image

    return image.transpose(Image.Transpose[turn])
