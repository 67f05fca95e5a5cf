"""PNG files byte by byte, whole and broken, of every kind that the format knows."""

from __future__ import annotations

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
KINDS = [
    *((0, depth) for depth in (1, 2, 4, 8, 16)),
    *((3, depth) for depth in (1, 2, 4, 8)),
    *((color, depth) for color in (2, 4, 6) for depth in (8, 16)),
]
# In which pass of an interlaced picture a pixel comes, by row and column modulo 8.
PASS = (
    "16462646",
    "77777777",
    "56565656",
    "77777777",
    "36463646",
    "77777777",
    "56565656",
    "77777777",
)


def chunk(kind: bytes, content: bytes, checksum: int | None = None) -> bytes:
    crc = zlib.crc32(kind + content) if checksum is None else checksum
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", crc)


def png(
    width: int,
    height: int,
    color: int,
    depth: int,
    rows: bytes,
    *,
    interlaced: bool = False,
    palette: bytes = b"",
    checksum: int | None = None,
) -> bytes:
    """A file with these rows; `checksum` stands in place of that of the pixels."""
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlaced)
    colors = chunk(b"PLTE", palette) if palette else b""
    pixels = chunk(b"IDAT", zlib.compress(rows), checksum)
    return SIGNATURE + chunk(b"IHDR", header) + colors + pixels + chunk(b"IEND", b"")


def packed(pixels: list[list[int]], depth: int) -> bytes:
    """A row of pixels, each number with `depth` bits, the first one in the highest bits."""
    bits = "".join(f"{number:0{depth}b}" for pixel in pixels for number in pixel)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))


def rows_of(pixels: list[list[list[int]]], depth: int, *, interlaced: bool = False) -> bytes:
    """Unfiltered rows of pixels, each a list of channels."""
    if not interlaced:
        return b"".join(b"\0" + packed(row, depth) for row in pixels)
    out = b""
    for number in "1234567":
        for y, row in enumerate(pixels):
            mine = [pixel for x, pixel in enumerate(row) if PASS[y % 8][x % 8] == number]
            out += b"\0" + packed(mine, depth) if mine else b""
    return out
