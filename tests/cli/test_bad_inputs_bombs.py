"""Small files that ask for much: each ends in a sentence or is read, at the cost of a small file.

Each command runs in a process of its own, whose CPU seconds and memory are counted.
"""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import pytest
from costs import assert_cheap, cost_of
from png_bytes import SIGNATURE, chunk, png
from refusals import needs_proc

PICTURES = """\
gradcli: 1
name: pets
data: {name: image_folder, dir: pets, size: 224, split: {train: 60%, val: 40%}}
model: [flatten, linear: $data.classes]
loss: cross_entropy
optim: {name: sgd, lr: 0.1}
train: {epochs: 1, batch: 4}
"""
DOT = png(4, 4, 0, 8, bytes(20))


def black(width: int, height: int, color: int = 0, depth: int = 8) -> bytes:
    """A PNG of zeros, of which no more than a megabyte is in memory."""
    channels = {0: 1, 2: 3, 3: 1, 6: 4}[color]
    left = height * (1 + (width * channels * depth + 7) // 8)
    packer, packed = zlib.compressobj(9), []
    while left > 0:
        packed.append(packer.compress(bytes(min(left, 1 << 20))))
        left -= 1 << 20
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    palette = chunk(b"PLTE", bytes(3)) if color == 3 else b""
    rows = chunk(b"IDAT", b"".join(packed) + packer.flush())
    return SIGNATURE + chunk(b"IHDR", header) + palette + rows + chunk(b"IEND", b"")


def scans(count: int) -> bytes:
    """A JPEG of 16 million pixels with so many scans that change none of them."""
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.new("L", (4000, 4000)).save(file, "JPEG", progressive=True)
    data = file.getvalue()
    return data[:-2] + data[data.rindex(b"\xff\xda") : -2] * count + data[-2:]


PICTURE_BOMBS = {
    "1 x 20,000": (lambda: black(1, 20_000), ""),
    "1 x 200,000": (lambda: black(1, 200_000, 2), ""),
    "20,000 x 1": (lambda: black(20_000, 1), ""),
    "1 x 1": (lambda: black(1, 1), ""),
    "13,000 x 13,000": (lambda: black(13_000, 13_000, 2), "pixels unpack to 676000000 bytes"),
    "13,000 x 13,000, a palette": (lambda: black(13_000, 13_000, 3, 1), "pixels unpack to"),
    "1,000 scans": (lambda: scans(1000), "it has more than 64 scans"),
}


@needs_proc
@pytest.mark.parametrize("name", PICTURE_BOMBS)
def test_a_picture_costs_no_more_than_a_small_file(tmp_path: Path, name: str) -> None:
    pytest.importorskip("PIL")
    make, message = PICTURE_BOMBS[name]
    (tmp_path / "pets.yaml").write_text(PICTURES)
    for place in ("cat/1.png", "cat/2.png", "dog/1.png", "dog/2.png"):
        file = tmp_path / "pets" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(make() if place == "dog/2.png" else DOT)
    cost = cost_of(tmp_path, "train", "pets.yaml")
    assert (cost.code, message in cost.err) == (3 if message else 0, True), cost
    assert_cheap(cost)
