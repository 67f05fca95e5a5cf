"""Thousands of damaged files: every reader ends in a value or a DataError, nothing else."""

from __future__ import annotations

import io
import math
import random
import zipfile
from collections.abc import Callable

import pytest
from idx_bytes import images, packed

from gradcli.data import cifar, npy
from gradcli.data.columns import Encoder, Table, categories, numbers
from gradcli.data.csv_rows import parse_rows
from gradcli.data.files import text_of
from gradcli.data.idx import parse
from gradcli.data.images import check_labels
from gradcli.data.inflate import inflate, is_gzip
from gradcli.data.text import encode
from gradcli.errors import DataError

CASES = 2000
BOUNDARIES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def mutate(data: bytes, draw: random.Random) -> bytes:
    """One to three flips, cuts, splices, boundary integers or repeats."""
    out = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        at, kind = draw.randrange(len(out) + 1), draw.randrange(6)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del out[at:]
        elif kind == 2:
            del out[at : at + draw.randint(1, 8)]
        elif kind == 3:
            out[at:at] = out[draw.randrange(len(out) + 1) :][: draw.randint(1, 16)]
        elif kind == 4:
            out[at : at + 4] = draw.choice(BOUNDARIES).to_bytes(4, "big")
        else:
            out[at:at] = bytes([draw.choice(b'",\r\n\0\xff\xefN ')])
    return bytes(out)


def read_idx(data: bytes) -> None:
    found = parse(data, "f")
    assert len(found.numbers) * found.header.item + found.header.length == found.header.total


def read_csv(data: bytes) -> None:
    content = inflate(data, 1 << 20, "f") if is_gzip(data) else data
    table = Table.of(parse_rows(content, "f"), "f")
    table.need(["n", "c"])
    numbers(table, "n", allowed=True)
    known = {name: 0.5 for name in categories(table, "c", allowed=True) if name is not None}
    Encoder({"n": (0.0, 0.0, 1.0)}, {"c": known}).encode(table, allowed=True)


def read_text(data: bytes) -> None:
    content = inflate(data, 1 << 20, "f") if is_gzip(data) else data
    text = text_of(content, "f")
    assert len(encode(text, sorted(set(text)), "f")) == len(text)


def read_cifar(data: bytes) -> None:
    content = inflate(data, 1 << 20, "f") if is_gzip(data) else data
    labels, pixels = cifar.parse(content, 1, "f")
    check_labels(labels, 10, "f")
    assert len(pixels) == len(labels) * 3072


def read_npy(data: bytes) -> None:
    found = npy.parse(data, "f")
    assert len(found.numbers) == math.prod(found.header.shape)


def read_npz(data: bytes) -> None:
    found = npy.unpack(data, "x", "f")
    assert npy.peek(io.BytesIO(data), "x", "f") == found.header


def npy_bytes(shape: str = "(3, 2)", kind: str = ">i2", size: int = 12) -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': True, 'shape': {shape}, }}"
    text += " " * (64 - 10 - len(text) % 64) + "\n"
    return npy.MAGIC + b"\1\0" + len(text).to_bytes(2, "little") + text.encode() + bytes(size)


def npz_bytes(method: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("y.npy", npy_bytes())
        archive.writestr("x.npy", npy_bytes())
    return file.getvalue()


TABLE = b'n,c\r\n1.5,a\r\n-2e3,"b ""q"", b"\r\nNA,a\r\n0,"two\nlines"\r\n'
TEXT = "Größe und Maß\nsecond line\n".encode()


SEEDS = {
    "idx": (read_idx, images()),
    "idx-gzip": (read_idx, packed(images())),
    "csv": (read_csv, TABLE),
    "csv-gzip": (read_csv, packed(TABLE)),
    "text": (read_text, TEXT),
    "cifar": (read_cifar, bytes(3073 * 2)),
    "text-gzip": (read_text, packed(TEXT)),
    "npy": (read_npy, npy_bytes()),
    "npy-half": (read_npy, npy_bytes("()", "<f2", 2)),
    "npz": (read_npz, npz_bytes(zipfile.ZIP_STORED)),
    "npz-deflated": (read_npz, npz_bytes(zipfile.ZIP_DEFLATED)),
}


@pytest.mark.parametrize(("reader", "seed"), SEEDS.values(), ids=SEEDS)
def test_only_values_or_data_errors(reader: Callable[[bytes], None], seed: bytes) -> None:
    draw = random.Random(20240917)
    reader(seed)
    refused = 0
    for case in range(CASES):
        data = mutate(seed, draw)
        try:
            reader(data)
        except DataError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"case {case}: {data!r}") from error
    assert 0 < refused < CASES
