"""Formats of pictures that are read, and what is refused of a file before Pillow opens it."""

from __future__ import annotations

from gradcli.data.foreign import kind_of

FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF")  # Pillow's names
NAMES = "PNG, JPEG, WebP, BMP or GIF"
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif")
_OURS = {f"a {name} picture" for name in ("PNG", "JPEG", "WebP", "BMP", "GIF")}
_RUN_LENGTHS = (1, 2)  # of the ways in which a BMP is packed


def sides_before_opening(data: bytes) -> tuple[int, int] | None:
    """Width and height of a file that Pillow would make memory for as soon as it opens it.

    A ValueError with the reason where the file begins like one of these but does not go on like it.
    """
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _size_of_webp(data)
    if data[:2] == b"BM":
        _check_bmp(data)
    return None


def _size_of_webp(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if len(data) >= 30 and kind == b"VP8X":
        width, height = (1 + int.from_bytes(data[at : at + 3], "little") for at in (24, 27))
    elif len(data) >= 30 and kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = (int.from_bytes(data[at : at + 2], "little") & 0x3FFF for at in (26, 28))
    elif len(data) >= 25 and kind == b"VP8L" and data[20] == 0x2F:
        bits = int.from_bytes(data[21:25], "little")
        width, height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    else:
        raise ValueError("it is a WebP without the header of a picture")
    return width, height


def _check_bmp(data: bytes) -> None:
    """Refuse run lengths: Pillow unpacks them in Python, where a jump may ask for all memory."""
    long_header = int.from_bytes(data[14:18], "little") >= 40
    if long_header and int.from_bytes(data[30:34], "little") in _RUN_LENGTHS:
        raise ValueError("it is a BMP packed by run lengths; save it as PNG")


def unknown(data: bytes) -> str:
    """Why Pillow knows no picture in these bytes."""
    kind = "a BMP picture" if data[:2] == b"BM" else kind_of(data[:64])
    if kind in _OURS:
        return f"it begins like {kind}, but its header is damaged"
    return f"it is {kind or 'none of these'}"
