"""Every kind of picture as docs/data.md says: converted, with what is lost named, or refused."""

from __future__ import annotations

import io
import random
import struct
from typing import Any

import pytest
from png_bytes import SIGNATURE, chunk, png, rows_of

from gradcli.data import decode, jpeg, modes
from gradcli.errors import DataError

Image = pytest.importorskip("PIL.Image")
ImageOps = pytest.importorskip("PIL.ImageOps")


def encoded(picture: Any, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def first(data: bytes, color: str = "rgb") -> tuple[int, ...]:
    """The channels of the first pixel of a picture of 4 x 4."""
    return tuple(decode.planes(data, 4, color, "x")[::16])


def losses(data: bytes) -> tuple[str, ...]:
    return decode.decode_image(data, 4, "rgb", "x").losses


def plain(color: int, depth: int, pixel: list[int], **options: Any) -> bytes:
    """A PNG of 4 x 4 equal pixels."""
    return png(4, 4, color, depth, rows_of([[pixel] * 4] * 4, depth), **options)


@pytest.mark.parametrize(
    ("depth", "written", "gray"),
    [(1, 1, 255), (2, 1, 85), (2, 2, 170), (4, 7, 119), (8, 200, 200), (16, 0x80FF, 0x80)],
)
def test_grays_of_any_depth_are_spread_over_0_to_255(depth: int, written: int, gray: int) -> None:
    data = plain(0, depth, [written])
    assert (first(data), first(data, "gray")) == ((gray,) * 3, (gray,))
    assert losses(data) == ((modes.SIXTEEN_BITS,) if depth == 16 else ())


def test_a_palette_stands_for_its_colours() -> None:
    palette = bytes([9, 8, 7, 10, 200, 30])
    assert first(plain(3, 8, [1], palette=palette)) == (10, 200, 30)
    assert losses(plain(3, 8, [1], palette=palette)) == ()


@pytest.mark.parametrize(
    ("mode", "pixel", "expected"),
    [
        ("RGBA", (10, 200, 30, 0), (10, 200, 30)),
        ("LA", (90, 3), (90, 90, 90)),
    ],
)
def test_transparency_is_left_out_and_told(mode: str, pixel: Any, expected: Any) -> None:
    data = encoded(Image.new(mode, (4, 4), pixel), "PNG")
    assert (first(data), losses(data)) == (expected, (modes.TRANSPARENT,))
    opaque = encoded(Image.new(mode, (4, 4), (*pixel[:-1], 255)), "PNG")
    assert (first(opaque), losses(opaque)) == (expected, ())


def test_a_transparent_colour_of_a_palette_is_told() -> None:
    picture = Image.new("P", (4, 4), 1)
    picture.putpalette([1, 2, 3, 10, 200, 30])
    data = encoded(picture, "PNG", transparency=1)
    assert (first(data), losses(data)) == ((10, 200, 30), (modes.TRANSPARENT,))


def test_16_bits_of_any_kind_are_told() -> None:
    for color, pixel in ((2, [1 << 15] * 3), (4, [1 << 15, 0xFFFF]), (6, [1 << 15] * 3 + [0xFFFF])):
        assert losses(plain(color, 16, pixel)) == (modes.SIXTEEN_BITS,)
        assert first(plain(color, 16, pixel)) == (128,) * 3


@pytest.mark.parametrize("mark", range(1, 10))
@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_a_mark_of_orientation_is_obeyed(kind: str, mark: int) -> None:
    """As ImageOps.exif_transpose does; 9 is no mark."""
    picture = Image.frombytes("RGB", (8, 4), random.Random(3).randbytes(96))
    exif = Image.Exif()
    exif[0x0112] = mark
    lossless = {"lossless": True} if kind == "WEBP" else {}
    marked = encoded(picture, kind, exif=exif, **lossless)
    with Image.open(io.BytesIO(marked)) as opened:
        turned = encoded(ImageOps.exif_transpose(opened), "PNG")
        assert decode.planes_of(opened, 4, "rgb") == decode.planes(turned, 4, "rgb", "x")
    assert decode.planes(marked, 4, "rgb", "x") == decode.planes(turned, 4, "rgb", "x")
    assert (turned == encoded(picture, "PNG")) == (mark in (1, 9))
    assert losses(marked) == ()


def test_a_damaged_mark_turns_nothing() -> None:
    picture = Image.new("RGB", (8, 4), "blue")
    assert losses(encoded(picture, "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x09damage")) == ()


@pytest.mark.parametrize("kind", ["WEBP", "BMP", "GIF"])
def test_other_formats_hold_the_same_pixels(kind: str) -> None:
    picture = Image.frombytes("L", (9, 7), random.Random(4).randbytes(63)).convert("RGB")
    lossless = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(picture.convert("L") if kind == "GIF" else picture, kind, **lossless)
    assert decode.planes(data, 5, "rgb", "x") == decode.planes_of(picture, 5, "rgb")
    assert losses(data) == ()


@pytest.mark.parametrize("kind", ["WEBP", "GIF"])
def test_of_an_animation_the_first_picture_is_taken_and_that_is_told(kind: str) -> None:
    red, blue = (Image.new("RGB", (4, 4), color) for color in ("red", "blue"))
    lossless = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(red, kind, save_all=True, append_images=[blue], **lossless)
    assert (first(data), losses(data)) == ((255, 0, 0), (modes.ANIMATED,))


def test_inks_are_read_as_adobe_writes_them() -> None:
    """Inverted, as Pillow's own writer and Photoshop do: 255 is no ink."""
    data = encoded(Image.new("CMYK", (4, 4), (255, 0, 0, 0)), "JPEG", quality=100)
    assert first(data)[0] <= 2 and min(first(data)[1:]) >= 253
    assert losses(data) == (modes.INKS,)


def test_ycck_is_the_same_inks_in_another_form() -> None:
    """The transform 2 in Adobe's segment says that three of the channels are luma and chroma."""
    data = encoded(Image.new("CMYK", (8, 8), (0, 0, 0, 255)), "JPEG", quality=100)
    at = data.index(b"\xff\xee")
    assert data[at + 4 : at + 9] == b"Adobe"
    (length,) = struct.unpack(">H", data[at + 2 : at + 4])
    end = at + 2 + length
    ycck = data[: end - 1] + b"\2" + data[end:]
    assert losses(ycck) == (modes.INKS,)
    assert max(first(ycck)) <= 2  # black ink alone


def test_a_progressive_jpeg_is_read_like_a_plain_one() -> None:
    picture = Image.frombytes("RGB", (16, 16), random.Random(1).randbytes(768))
    plain, progressive = (encoded(picture, "JPEG", progressive=how) for how in (False, True))
    assert decode.planes(plain, 16, "rgb", "x") == decode.planes(progressive, 16, "rgb", "x")


def test_of_an_animated_png_the_picture_is_taken_that_all_programs_show() -> None:
    red, blue = (Image.new("RGB", (4, 4), color) for color in ("red", "blue"))
    data = encoded(red, "PNG", save_all=True, append_images=[blue])
    assert b"acTL" in data and first(data) == (255, 0, 0)


def test_a_mode_whose_numbers_are_no_bytes_is_refused() -> None:
    for picture, what in (
        (Image.new("I", (4, 4), 40000), "its mode is I, whose numbers are no 0..255"),
        (Image.new("I", (4, 4), -1), "its mode is I, "),
        (Image.new("F", (4, 4), 0.5), "its mode is F, "),
        (Image.new("La", (4, 4)), "its mode is La, "),
        (Image.new("LAB", (4, 4)), "conversion from LAB to RGB not"),
    ):
        with pytest.raises(DataError, match=f"^x: a picture that is not read: {what}"):
            decode.planes_of(picture, 4, "gray", "x")


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "HSV"])
def test_every_other_mode_in_memory_is_read(mode: str) -> None:
    for color, channels in (("gray", 1), ("rgb", 3)):
        assert len(decode.planes_of(Image.new(mode, (9, 5)), 4, color)) == 16 * channels


@pytest.mark.parametrize("mode", ["1", "L", "LA", "RGB"])
def test_a_gray_picture_is_resized_to_the_same_bits_as_its_rgb(mode: str) -> None:
    draw = random.Random(2)
    for _ in range(20):
        size = draw.randint(1, 40), draw.randint(1, 40)
        content = draw.randbytes(3 * size[0] * size[1])
        picture = Image.frombytes("RGB", size, content).convert(mode)
        rgb = decode.planes_of(picture.convert("RGB"), 7, "rgb")
        assert decode.planes_of(picture, 7, "rgb") == rgb


@pytest.mark.parametrize(("width", "height"), [(1, 20_000), (20_000, 1), (3, 60_000)])
def test_of_a_very_long_picture_the_middle_is_kept(width: int, height: int) -> None:
    picture = Image.new("L", (width, height), 10)
    long = max(width, height)
    middle = (0, long // 2 - 200, width, long // 2 + 200)
    picture.paste(99, middle if height > width else (middle[1], 0, middle[3], height))
    assert set(decode.planes_of(picture, 224, "gray")) == {99}


def test_pictures_of_common_shapes_are_resized_whole() -> None:
    """No bit of a trained model depends on how long a picture may be."""
    for size, shape in ((32, (4096, 1)), (224, (83, 1)), (1024, (4, 1)), (4096, (4, 1))):
        picture = Image.new("L", shape)
        assert decode._middle(picture, size) is picture
        assert decode._middle(picture.resize((shape[0] + 2, 1)), size).size == shape


def test_a_jpeg_of_too_many_scans_is_refused() -> None:
    data = encoded(Image.new("RGB", (16, 16)), "JPEG", progressive=True)
    scan = data[data.rindex(b"\xff\xda") : -2]
    most = jpeg.MOST_SCANS - data.count(b"\xff\xda")
    assert len(first(data[:-2] + scan * most + b"\xff\xd9")) == 3
    with pytest.raises(DataError, match="it has more than 64 scans"):
        first(data[:-2] + scan * (most + 1) + b"\xff\xd9")


def test_what_lies_behind_a_jpeg_is_not_counted() -> None:
    """Telephones append a film to a picture, and put a smaller picture into it."""
    data = encoded(Image.new("RGB", (8, 8)), "JPEG", exif=b"Exif\0\0" + b"\xff\xda" * 100)
    assert len(first(data + b"\xff\xda" * 100)) == 3


def test_a_png_of_too_many_chunks_is_refused() -> None:
    whole = plain(0, 8, [1])
    at = len(SIGNATURE) + 25
    with pytest.raises(DataError, match="it has more than 100000 chunks"):
        first(whole[:at] + chunk(b"abCd", b"") * 100_001 + whole[at:])


def test_a_picture_that_unpacks_to_much_more_than_its_file_is_refused() -> None:
    wide = png(8200, 8200, 0, 1, bytes(8200 * 1026))
    with pytest.raises(
        DataError, match=r"x: 8200 x 8200 pixels unpack to 67240000 bytes, more than 200 for each"
    ):
        decode.planes(wide, 4, "gray", "x")
    assert len(decode.planes(wide + bytes(1 << 20), 4, "gray", "x")) == 16
