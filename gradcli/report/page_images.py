"""Numbers as pictures in a page: PNG files, written by ourselves, as data addresses."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gradcli.data.png import SIGNATURE
from gradcli.report.run_files import floats
from gradcli.train.safetensors_file import RawTensor

LONGEST = 128  # pixels of a side; of larger pictures each second, third, ... pixel is shown
COLORS = {1: 0, 3: 2, 4: 6}  # PNG's number for so many channels


class PageImage(NamedTuple):
    """A picture as an address, and its size on the screen."""

    address: str
    width: int
    height: int


def page_images(tensors: Mapping[str, RawTensor], name: str) -> list[PageImage]:
    """Each row of a tensor as a picture; values are brightnesses from 0 to 1."""
    tensor = tensors.get(name)
    if tensor is None or len(tensor.shape) not in (3, 4):
        return []
    shape = tensor.shape[1:] if len(tensor.shape) == 4 else (1, *tensor.shape[1:])
    if shape[0] not in COLORS or not all(shape):
        return []
    return [_image(row, *shape) for row in floats(tensors, name)]


def _image(row: Sequence[float | None], channels: int, height: int, width: int) -> PageImage:
    every = -(-max(height, width) // LONGEST)
    plane = height * width
    lines = []
    for top in range(0, height, every):
        begin = top * width
        line = bytearray(channels * len(range(0, width, every)))
        for channel in range(channels):
            at = channel * plane + begin
            line[channel::channels] = bytes(map(_brightness, row[at : at + width : every]))
        lines.append(bytes(line))
    wide, high = len(range(0, width, every)), len(lines)
    data = png(lines, wide, high, channels)
    return PageImage(f"data:image/png;base64,{base64.b64encode(data).decode('ascii')}", wide, high)


def _brightness(value: float | None) -> int:
    """0 to 255; black where there is no number."""
    return 0 if value is None else max(0, min(255, int(value * 255 + 0.5)))


def png(lines: Sequence[bytes], width: int, height: int, channels: int) -> bytes:
    """A PNG file of 8 bits a channel: each line has its pixels behind each other."""
    header = struct.pack(">IIBBBBB", width, height, 8, COLORS[channels], 0, 0, 0)
    rows = b"".join(b"\0" + line for line in lines)  # 0: not filtered
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(kind, content) for kind, content in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
