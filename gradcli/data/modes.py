"""Pictures of every kind as 8 bits a channel in gray or RGB, and what is lost on the way."""

from __future__ import annotations

from typing import Any

GRAYS = ("1", "L", "LA")  # of Pillow's modes, those whose colour is one number
# Modes of which Pillow knows the way to gray and to RGB.
_COLORS = ("P", "PA", "RGB", "RGBA", "RGBX", "RGBa", "CMYK", "YCbCr", "HSV", "LAB")
_ORIENTATION = 0x0112  # of Exif; 1 is upright

SIXTEEN_BITS = "of 16 bits, of which the upper 8 are taken"
TRANSPARENT = "transparent in places, where the colour behind is taken as it is stored"
TURNED = "marked as turned or mirrored, which is not done"
INKS = "of printing inks (CMYK), turned into RGB without a colour profile"


def of_bytes(picture: Any, mode: str, *, of_png: bool) -> Any:
    """A picture in the mode "L" or "RGB"; a gray one stays "L".

    Pillow makes white of every gray of 16 bits above 255, so those are divided here. A PNG of 16
    bits is in mode I where Pillow is older; in memory that has numbers of any range.
    """
    if picture.mode.startswith("I;16") or (picture.mode == "I" and of_png):
        return picture.convert("I").point(lambda gray: gray * (1 / 256)).convert("L")
    if picture.mode == "I" and all(0 <= gray <= 255 for gray in picture.getextrema()):
        return picture.convert("L")
    if picture.mode not in (*GRAYS, *_COLORS):
        raise ValueError(f"its mode is {picture.mode}, whose numbers are no 0..255; convert it")
    if of_png and picture.mode == "P":
        colors = len(picture.palette.palette) // len(picture.palette.mode)
        if picture.getextrema()[1] >= colors:
            raise ValueError("it has a colour that is not in its palette")
    into = "L" if picture.mode in GRAYS else mode
    return picture if picture.mode == into else picture.convert(into)


def losses(picture: Any, bits: int) -> tuple[str, ...]:
    """What of an opened file is not in its gray or RGB of 8 bits; `bits` are those of a channel."""
    there = {
        SIXTEEN_BITS: bits == 16,
        TRANSPARENT: _is_transparent(picture),
        TURNED: _orientation(picture) != 1,
        INKS: picture.mode == "CMYK",
    }
    return tuple(loss for loss, is_there in there.items() if is_there)


def _is_transparent(picture: Any) -> bool:
    if "A" in picture.getbands():
        return bool(picture.getchannel("A").getextrema()[0] < 255)
    return "transparency" in picture.info


def _orientation(picture: Any) -> object:
    try:
        return picture.getexif().get(_ORIENTATION, 1)
    except Exception:  # damaged metadata harm no pixels, and are not looked at otherwise
        return 1
