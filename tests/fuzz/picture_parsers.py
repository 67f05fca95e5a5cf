"""Pictures of every kind: spoilt as bytes, or chunk by chunk with right checksums."""

from __future__ import annotations

import io
import random
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from parsing import OneFile, WrongAnswerError
from png_bytes import CHANNELS, KINDS, SIGNATURE, chunk, png, rows_of
from spoiling import BOUNDARIES, CHARACTERS, spoil_bytes

from gradcli.data import decode

SIDE = 6
CHUNKS = (
    b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"tEXt", b"zTXt", b"iTXt", b"bKGD", b"pHYs",
    b"eXIf", b"acTL", b"fcTL", b"fdAT", b"PLTE", b"IDAT", b"IEND", b"IHDR", b"abcd", b"ABCD",
)  # fmt: skip
MARKS = (b"RIFF", b"WEBP", b"VP8 ", b"VP8L", b"VP8X", b"ANIM", b"ANMF", b"BM", b"GIF89a", b"!\xf9")


class ImageSource(OneFile):
    """All formats as squares; the right ones come out as large as was asked for."""

    REFERENCE = "PIL.Image"
    PIECES = (
        *(*CHARACTERS, *CHUNKS, *MARKS, SIGNATURE),
        *(b"\xff" + bytes([n]) for n in range(0xC0, 0xFF)),
    )

    @cached_property
    def _seeds(self) -> list[bytes]:
        of_png = [drawn(*kind, interlaced) for kind in KINDS for interlaced in (False, True)]
        if not self.reference:
            return of_png
        return [*of_png, *jpegs(self.reference), *others(self.reference)]

    def seeds(self) -> Sequence[bytes]:
        return self._seeds

    def spoil(self, data: bytes, rng: random.Random) -> bytes:
        if not data.startswith(SIGNATURE) or rng.random() < 0.3:
            return spoil_bytes(data, rng, self.PIECES)
        return rebuilt(list(chunks_of(data)), rng)

    def parse(self, data: bytes) -> None:
        for color, (_, channels) in decode.COLORS.items():
            for size in (1, SIDE, 40):
                if len(decode.planes(data, size, color, "input")) != channels * size * size:
                    raise WrongAnswerError("another size than was asked for")


def drawn(color: int, depth: int, interlaced: bool) -> bytes:
    """A small picture of random pixels."""
    rng = random.Random(f"{color} {depth}")
    top = min(1 << depth, 16 if color == 3 else 1 << 16)
    pixels = [
        [[rng.randrange(top) for _ in range(CHANNELS[color])] for _ in range(SIDE + 1)]
        for _ in range(SIDE)
    ]
    rows = rows_of(pixels, depth, interlaced=interlaced)
    palette = bytes(range(48)) if color == 3 else b""
    return png(SIDE + 1, SIDE, color, depth, rows, interlaced=interlaced, palette=palette)


def jpegs(image: Any) -> Iterator[bytes]:
    """Gray, colour and four colours; in one pass and in several."""
    rng = random.Random(1)
    for mode, channels in (("L", 1), ("RGB", 3), ("CMYK", 4)):
        pixels = bytes(rng.randrange(256) for _ in range(20 * 14 * channels))
        for progressive in (False, True):
            file = io.BytesIO()
            picture = image.frombytes(mode, (20, 14), pixels)
            picture.save(file, "JPEG", progressive=progressive, quality=60)
            yield file.getvalue()


def others(image: Any) -> Iterator[bytes]:
    """WebP with and without loss, BMP and GIF, one of them turned, some with several pictures."""
    rng = random.Random(2)
    gray, red = (image.frombytes("L", (9, 7), rng.randbytes(63)) for _ in range(2))
    colored = image.merge("RGB", (red, gray, red))
    mark = image.Exif()
    mark[0x0112] = 6
    for picture, kind, options in (
        (colored, "WEBP", {"exif": mark}),
        (colored, "WEBP", {"lossless": True}),
        (image.merge("RGBA", (red, gray, red, gray)), "WEBP", {}),
        (colored, "WEBP", {"save_all": True, "append_images": [gray]}),
        (gray, "BMP", {}),
        (colored, "BMP", {}),
        (gray.convert("1"), "BMP", {}),
        (colored.quantize(8), "BMP", {}),
        (gray, "GIF", {}),
        (colored.quantize(8), "GIF", {"transparency": 1}),
        (gray, "GIF", {"save_all": True, "append_images": [red]}),
    ):
        file = io.BytesIO()
        picture.save(file, kind, **options)
        yield file.getvalue()


def chunks_of(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(SIGNATURE)
    while at < len(data):
        length = int.from_bytes(data[at : at + 4])
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        at += 12 + length


def rebuilt(chunks: list[tuple[bytes, bytes]], rng: random.Random) -> bytes:
    """The chunks with one to three of them changed, doubled, moved, left out or added."""
    for _ in range(rng.randint(1, 3)):
        at, kind = rng.randrange(len(chunks)), rng.randrange(6)
        name, content = chunks[at]
        if kind == 0:
            chunks.insert(rng.randrange(len(chunks) + 1), (rng.choice(CHUNKS), added(rng)))
        elif kind == 1:
            chunks.insert(rng.randrange(len(chunks) + 1), chunks[at])
        elif kind == 2 and len(chunks) > 1:
            del chunks[at]
        elif name == b"IDAT":
            chunks[at] = name, repacked(content, rng)
        elif name == b"IHDR" and len(content) == 13:
            chunks[at] = name, header(content, rng)
        else:
            chunks[at] = name, spoil_bytes(content, rng)
    return SIGNATURE + b"".join(chunk(name, content) for name, content in chunks)


def added(rng: random.Random) -> bytes:
    """What an extra chunk may hold: a name and something packed, or anything."""
    if rng.random() < 0.5:
        return b"name\0\0" + zlib.compress(bytes(rng.choice((0, 1, 3, 1 << 20))))
    return rng.randbytes(rng.choice((0, 1, 2, 6, 13, 26)))


def repacked(content: bytes, rng: random.Random) -> bytes:
    """Other rows with a right checksum."""
    try:
        rows = zlib.decompress(content)
    except zlib.error:
        return spoil_bytes(content, rng)
    return zlib.compress(spoil_bytes(rows, rng) if rows else b"\0")


def header(content: bytes, rng: random.Random) -> bytes:
    """Another width, height, depth, kind of colour, method or way of interlacing."""
    out, field = bytearray(content), rng.randrange(7)
    if field < 2:
        side = rng.choice((*BOUNDARIES, 1, 2, 5, 8, 1000, 20_000, 1 << 24))
        out[4 * field : 4 * field + 4] = side.to_bytes(4)
    else:
        out[6 + field] = rng.choice((0, 1, 2, 3, 4, 6, 8, 16, 255))
    return bytes(out)
