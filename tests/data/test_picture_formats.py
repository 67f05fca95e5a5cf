"""What is refused of a picture before Pillow makes memory for it."""

from __future__ import annotations

import struct

import pytest

from gradcli.data import decode
from gradcli.data.image_formats import sides_before_opening
from gradcli.errors import DataError


def webp(kind: bytes, content: bytes) -> bytes:
    chunk = kind + struct.pack("<I", len(content)) + content
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


LARGEST = 16383
HEADERS = {
    "VP8X": webp(b"VP8X", bytes(4) + (LARGEST - 1).to_bytes(3, "little") * 2),
    "VP8 ": webp(b"VP8 ", b"\x10\0\0\x9d\x01\x2a" + struct.pack("<HH", LARGEST, LARGEST)),
    "VP8L": webp(
        b"VP8L", b"\x2f" + struct.pack("<I", (LARGEST - 1) | (LARGEST - 1) << 14) + bytes(5)
    ),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_the_size_of_a_webp_is_known_before_it_is_opened(kind: str) -> None:
    assert sides_before_opening(HEADERS[kind]) == (LARGEST, LARGEST)
    pytest.importorskip("PIL")
    with pytest.raises(DataError, match="x: 16383 x 16383 pixels; at most"):
        decode.planes(HEADERS[kind], 4, "rgb", "x")
    small = HEADERS["VP8X"].replace((LARGEST - 1).to_bytes(3, "little"), b"\xff\x1f\0")
    with pytest.raises(DataError, match="x: 8192 x 8192 pixels unpack to 268435456 bytes"):
        decode.planes(small, 4, "rgb", "x")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (webp(b"ABCD", bytes(20)), "it is a WebP without the header of a picture"),
        (b"BM" + bytes(12) + b"\x28" + bytes(15) + b"\1" + bytes(9), "BMP packed by run lengths"),
        (b"BM", "it begins like a BMP picture, but its header is damaged"),
        (b"GIF89a", "it begins like a GIF picture, but its header is damaged"),
        (b"II*\0", "it is a TIFF picture"),
    ],
)
def test_other_damage_is_told(data: bytes, reason: str) -> None:
    pytest.importorskip("PIL")
    with pytest.raises(DataError, match=f"x: not a whole .* picture: .*{reason}"):
        decode.planes(data, 4, "rgb", "x")
