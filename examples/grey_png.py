"""Grey images as one PNG file, without an imaging library."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from gradcli import engine

BETWEEN = 2


def save(path: Path, images: engine.Tensor, across: int, scale: int = 2) -> None:
    """Images (N, H, W) from 0 (black) to 1 (white), `across` in a row, each pixel `scale` wide."""
    height, width = images.shape[-2:]
    down = -(-len(images) // across)
    grey = (images.clip(0.0, 1.0) * 255.0).round().to(engine.uint8).tolist()
    page = [bytearray(across * (width + BETWEEN) * scale) for _ in range(down * (height + BETWEEN))]
    for number, image in enumerate(grey):
        top, left = number // across * (height + BETWEEN), number % across * (width + BETWEEN)
        for y, row in enumerate(image):
            wide = bytes(value for value in row for _ in range(scale))
            page[top + y][left * scale : (left + width) * scale] = wide
    path.write_bytes(_encoded([row for row in page for _ in range(scale)]))


def _encoded(rows: list[bytearray]) -> bytes:
    """8-bit grey, each row after the byte 0, which says that it is not filtered (RFC 2083)."""
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    parts = ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
