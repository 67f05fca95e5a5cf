"""The frame of a PNG: whole files of every kind pass, damaged ones are refused with the reason."""

from __future__ import annotations

import io
import random
import struct
import time
from typing import Any

import pytest
from png_bytes import CHANNELS, KINDS, chunk, png, rows_of

from gradcli.data import decode
from gradcli.data.png import SIGNATURE, check
from gradcli.errors import DataError

Image = pytest.importorskip("PIL.Image")

COLORS = bytes(range(48))  # a palette of 16


def drawn(seed: int, color: int, depth: int, interlaced: bool, **options: Any) -> bytes:
    """A picture of a few random pixels, and what its rows lack or have too much."""
    draw = random.Random(f"{seed} {color} {depth} {interlaced}")
    width, height = draw.randint(1, 19), draw.randint(1, 19)
    top = min(1 << depth, 16 if color == 3 else 1 << 16)
    pixels = [
        [[draw.randrange(top) for _ in range(CHANNELS[color])] for _ in range(width)]
        for _ in range(height)
    ]
    rows = rows_of(pixels, depth, interlaced=interlaced)
    lack = options.pop("lack", 0)
    palette = COLORS if color == 3 else b""
    rows = rows[:-lack] if lack else rows
    return png(width, height, color, depth, rows, interlaced=interlaced, palette=palette, **options)


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(("color", "depth"), KINDS)
def test_whole_files_of_every_kind_pass(color: int, depth: int, interlaced: bool) -> None:
    for seed in range(8):
        check(drawn(seed, color, depth, interlaced))
        with pytest.raises(ValueError, match=r"its rows need (\d+) bytes, \d+ are there"):
            check(drawn(seed, color, depth, interlaced, lack=1))


@pytest.mark.parametrize(("color", "depth"), KINDS)
def test_an_interlaced_picture_is_that_of_its_rows(color: int, depth: int) -> None:
    draw = random.Random(5)
    pixels = [[[draw.randrange(1 << depth)] * CHANNELS[color] for _ in range(9)] for _ in range(9)]
    palette = bytes(3 * (1 << depth)) if color == 3 else b""
    plain, interlaced = (
        png(
            9,
            9,
            color,
            depth,
            rows_of(pixels, depth, interlaced=how),
            interlaced=how,
            palette=palette,
        )
        for how in (False, True)
    )
    assert decode.planes(plain, 9, "rgb", "x") == decode.planes(interlaced, 9, "rgb", "x")


@pytest.mark.parametrize("color", ["gray", "rgb"])
@pytest.mark.parametrize("kind", [0, 2, 4, 6])
def test_of_16_bits_the_upper_8_are_taken(kind: int, color: str) -> None:
    grays = [0, 0xFF, 0x100, 0x40FF, 0x8000, 0xFFFE, 0xFFFF, 0x1234]
    pixel = {1: 1, 2: 1, 3: 3, 4: 3}[CHANNELS[kind]]
    alpha = [0xFFFF] * (CHANNELS[kind] - pixel)
    rows = rows_of([[[gray] * pixel + alpha for gray in grays]] * 8, 16)
    found = decode.planes(png(8, 8, kind, 16, rows), 8, color, "x")
    assert found[:8] == bytes(gray >> 8 for gray in grays)


def test_a_file_cut_anywhere_is_refused() -> None:
    data = drawn(1, 2, 8, False)
    for length in range(len(SIGNATURE), len(data)):
        with pytest.raises(ValueError, match=f"it ends at byte {length}, "):
            check(data[:length])
        with pytest.raises(DataError, match=r"x\.png: not a whole .* or GIF picture: "):
            decode.planes(data[:length], 4, "rgb", "x.png")


def test_one_flipped_bit_anywhere_is_refused() -> None:
    data = drawn(2, 3, 4, True)
    for bit in range(8 * len(SIGNATURE), 8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match=r"checksum|it ends at|IHDR"):
            check(bytes(changed))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (SIGNATURE, "it ends at byte 8, before its last chunk"),
        (SIGNATURE + chunk(b"IEND", b""), "begin with the chunk IHDR of 13 bytes"),
        (SIGNATURE + chunk(b"IHDR", b"short") + chunk(b"IEND", b""), "IHDR of 13 bytes"),
        (png(0, 4, 2, 8, b""), "it has 0 x 4 pixels"),
        (png(1, 1, 1, 8, b"\0\0"), "no PNG has 8 bits, colour 1 and interlacing 0"),
        (png(1, 1, 2, 4, b"\0\0"), "no PNG has 4 bits, colour 2"),
        (png(1, 1, 3, 8, b"\0\0"), "its colours are numbers of a palette that is not there"),
        (
            png(1, 1, 0, 8, b"\0\0", checksum=1),
            "the checksum of its chunk IDAT at byte 33 is wrong",
        ),
    ],
)
def test_what_is_no_whole_png_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check(data)


def test_pixels_that_cannot_be_unpacked_are_refused() -> None:
    header = struct.pack(">IIBBBBB", 4, 4, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", b"no deflate"), chunk(b"IEND", b"")
    with pytest.raises(ValueError, match="its pixels are damaged: incorrect header check"):
        check(SIGNATURE + b"".join(parts))


def test_a_colour_beyond_the_palette_is_refused() -> None:
    for depth, last in ((8, 15), (4, 15), (8, 16)):
        data = png(2, 1, 3, depth, rows_of([[[0], [last]]], depth), palette=COLORS)
        if last < 16:
            assert decode.planes(data, 1, "rgb", "x")
        else:
            with pytest.raises(DataError, match="it has a colour that is not in its palette"):
                decode.planes(data, 1, "rgb", "x")


def test_pictures_in_memory_have_the_grays_and_colours_they_show() -> None:
    grays = [0, 7, 200, 255]
    made = {mode: Image.new(mode, (4, 4)) for mode in ("L", "I", "I;16")}
    for mode, picture in made.items():
        for x, gray in enumerate(grays):
            for y in range(4):
                picture.putpixel((x, y), gray << 8 if mode == "I;16" else gray)
        assert list(decode.planes_of(picture, 4, "gray")[:4]) == grays, mode
    few = made["L"].quantize(4)
    for palette in (few, few.convert("RGB").convert("P"), Image.new("P", (4, 4))):
        expected = palette.convert("RGB").getpixel((3, 0))[0]
        assert decode.planes_of(palette, 4, "rgb")[3] == expected


def test_bytes_behind_the_last_chunk_do_no_harm() -> None:
    check(drawn(1, 2, 8, False) + b"appended by a camera")


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_60000_by_60000_pixels_are_refused_before_they_are_unpacked(kind: str) -> None:
    data = png(60000, 60000, 2, 8, bytes(1 << 20))
    if kind == "JPEG":
        file = io.BytesIO()
        Image.new("RGB", (8, 8)).save(file, kind)
        at = file.getvalue().index(b"\xff\xc0") + 5
        size = struct.pack(">HH", 60000, 60000)
        data = file.getvalue()[:at] + size + file.getvalue()[at + 4 :]
    begin = time.process_time()
    with pytest.raises(DataError, match=r"x: (60000 x 60000|more than 178956970) pixels; "):
        decode.planes(data, 4, "rgb", "x")
    assert time.process_time() - begin < 1
