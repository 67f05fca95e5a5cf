from __future__ import annotations

import os
import struct
import tracemalloc
from pathlib import Path

import pytest
from idx_bytes import idx_bytes, images, labels, packed

from gradcli.data.idx import parse, parse_header, read_header
from gradcli.errors import DataError


def test_numbers_and_shape_are_read() -> None:
    found = parse(images(4, 2), "f")
    assert (found.header.dtype, found.header.shape) == ("uint8", (4, 2, 2))
    assert list(found.numbers) == list(range(16))


@pytest.mark.parametrize(
    ("kind", "form", "values"),
    [
        (0x09, "b", (-128, 0, 127)),
        (0x0B, "h", (-32768, 1, 258)),
        (0x0C, "i", (-(2**31), 1, 66051)),
        (0x0D, "f", (-1.5, 0.0, 2.0**100)),
        (0x0E, "d", (-1.5, 1e300, 5e-324)),
    ],
)
def test_every_type_is_big_endian(kind: int, form: str, values: tuple[float, ...]) -> None:
    data = idx_bytes((3,), struct.pack(f">3{form}", *values), kind)
    assert tuple(parse(data, "f").numbers) == values


@pytest.mark.parametrize("squeeze", [bytes, packed], ids=["plain", "gzip"])
def test_gzip_is_sniffed(squeeze: object) -> None:
    assert list(parse(squeeze(labels()), "f").numbers) == [0, 1, 2, 1]  # type: ignore[operator]


def test_cut_at_every_length_is_refused() -> None:
    data = images(3, 2)
    for length in range(len(data)):
        for shorter in (data[:length], packed(data[:length]), packed(data)[:length]):
            with pytest.raises(DataError):
                parse(shorter, "f")


def test_one_byte_less_or_more_gives_both_numbers() -> None:
    data = images(3, 2)
    with pytest.raises(DataError, match=f"expected {len(data)} bytes.*got {len(data) - 1}"):
        parse(data[:-1], "f")
    with pytest.raises(DataError, match=f"expected {len(data)} bytes.*got {len(data) + 1}"):
        parse(data + b"\0", "f")
    with pytest.raises(DataError, match="unpacks to more"):
        parse(packed(data + b"\0"), "f")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "at least 4 bytes"),
        (b"\x89PNG\r\n\x1a\n", "not an IDX file: it must begin with 00 00, found 89 50 4e"),
        (idx_bytes((1,), b"x", kind=0x0A), "unknown IDX type 0a"),
        (bytes([0, 0, 8, 0]), "0 dimensions"),
        (bytes([0, 0, 8, 255]) + bytes(4 * 255), "255 dimensions"),
        (idx_bytes((2**31, 2**31)), "header 00 00 08 02 80 00 00 00.*at most"),
        (idx_bytes((2**32 - 1,) * 8), "at most"),
        (idx_bytes((0, 2**32 - 1))[:8], "cut off at byte 8"),
        (idx_bytes((1 << 30,)), "got 8"),
    ],
)
def test_an_impossible_header_is_refused_without_allocating(data: bytes, message: str) -> None:
    tracemalloc.start()
    try:
        for source in (data, packed(data)):
            with pytest.raises(DataError) as caught:
                parse(source, "file.idx")
            assert caught.value.exit_code == 3
        with pytest.raises(DataError, match=message):
            parse(data, "file.idx")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_zero_size_is_a_file_without_numbers() -> None:
    assert len(parse(idx_bytes((0, 28, 28)), "f").numbers) == 0


def test_read_header_reads_only_the_beginning(tmp_path: Path) -> None:
    path = tmp_path / "big"
    with path.open("wb") as file:
        file.write(idx_bytes((1 << 20, 1000)))
        file.truncate(16 - 4 + (1000 << 20))
    assert read_header(path).shape == (1 << 20, 1000)
    os.truncate(path, 100)
    with pytest.raises(DataError, match="got 100"):
        read_header(path)


def test_parse_header_does_not_need_the_numbers() -> None:
    assert parse_header(idx_bytes((7, 3)), "f").total == 12 + 21
