"""Small files that ask for much: each ends in a sentence or is read, at the cost of a small file.

Each command runs in a process of its own, whose CPU seconds and memory are counted.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from costs import assert_cheap, cost_of
from png_bytes import SIGNATURE, chunk, png
from published_folders import GPT2, write_folder
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


TABLE = "{name: csv, file: it, target: y, numeric: [n]}"
TEXT = "{name: text, file: it}"
ARRAYS = "{name: npz, file: it, inputs: x, targets: y}"
IDX = "{name: idx, images: it, labels: labels}"
PACKED = 200 << 20  # bytes of each, unpacked


def packed(begin: bytes, line: bytes) -> bytes:
    """A gzip file of one line over and over."""
    file = io.BytesIO()
    with gzip.open(file, "wb") as out:
        write(out, begin, line)
    return file.getvalue()


def write(out: BinaryIO, begin: bytes, line: bytes) -> None:
    out.write(begin)
    for _ in range(PACKED >> 20):
        out.write(line * ((1 << 20) // len(line)))


def archive() -> bytes:
    """An archive of two arrays of zeros."""
    file, rows = io.BytesIO(), PACKED >> 4
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as into:
        for name, shape in (("x", f"({rows}, 16)"), ("y", f"({rows},)")):
            header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}".encode()
            begin = b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header
            with into.open(f"{name}.npy", "w") as out:
                if name == "x":
                    write(out, begin, bytes(1))
                else:
                    out.write(begin + bytes(rows))
    return file.getvalue()


GZIP_BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a table": (TABLE, lambda: packed(b"y,n\n", b"1,2\n")),
    "a text": (TEXT, lambda: packed(b"", b"abcdefg\n")),
    "bytes": (TEXT.replace("}", ", unit: bytes}"), lambda: packed(b"", bytes(1))),
    "images": (IDX, lambda: packed(b"\0\0\x08\2" + struct.pack(">II", PACKED >> 4, 16), bytes(1))),
    "an archive": (ARRAYS, archive),
}


@needs_proc
@pytest.mark.parametrize("name", GZIP_BOMBS)
def test_what_unpacks_to_200_times_itself_is_refused(tmp_path: Path, name: str) -> None:
    data, make = GZIP_BOMBS[name]
    model = "[embed: 4, linear: $data.vocab]" if "text" in data else "[flatten, linear: 1]"
    (tmp_path / "bomb.yaml").write_text(
        f"gradcli: 1\nname: bomb\ndata: {data}\nmodel: {model}\nloss: cross_entropy\n"
        "optim: {name: sgd, lr: 0.1}\ntrain: {epochs: 1, batch: 4}\n"
    )
    (tmp_path / "it").write_bytes(make())
    labels = struct.pack(">BBBBI", 0, 0, 8, 1, PACKED >> 4) + bytes(PACKED >> 4)
    (tmp_path / "labels").write_bytes(gzip.compress(labels))
    cost = cost_of(tmp_path, "train", "bomb.yaml")
    assert (cost.code, "MiB and to more than 200 times as many" in cost.err) == (3, True), cost
    assert_cheap(cost)


CONFIG = "gradcli: 1\nname: bomb\n{}optim: {{name: sgd, lr: 0.1}}\ntrain: {{epochs: 1, batch: 4}}\n"
MANY = "a config has at most 16384 values"
CONFIG_BOMBS = {
    "a list of maps": ("model:\n  - linear: [" + "{}," * 290_000 + "]\n", MANY),
    "layers": ("model:\n" + "  - linear: {out: -1, foo: 2}\n" * 27_000, MANY),
    "columns": ("data: {name: csv, numeric: [" + "c," * 400_000 + "]}\n", MANY),
    "uses of a block": (
        f"blocks:\n  b: {{layers: [{'relu,' * 7000}]}}\nmodel: [{'b,' * 7000}]\n",
        "the uses of blocks put in more than 16384 values",
    ),
    "files of code": ("code: [" + "x.py," * 15_000 + "]\n", "there is no file"),
}


@needs_proc
@pytest.mark.parametrize("name", CONFIG_BOMBS)
def test_a_config_of_too_many_values_is_refused(tmp_path: Path, name: str) -> None:
    text, message = CONFIG_BOMBS[name]
    (tmp_path / "bomb.yaml").write_text(CONFIG.format(text))
    cost = cost_of(tmp_path, "check", "bomb.yaml")
    assert (cost.code in (2, 3), message in cost.err) == (True, True), cost
    assert_cheap(cost)


MODEL = "data: mnist\nmodel: [linear: 10]\nloss: cross_entropy\n"
LONG = {
    "a key": (f"? {'k' * 900_000}\n: 1\n", [], "a key has at most 1024 characters"),
    "a name that is unknown": (f"loss: {'k' * 900_000}\n", [], "no loss is called 'kkk"),
    "overrides": (MODEL, ["train.batch=1"] * 1001, "a command has at most 1000 overrides"),
    "levels": (MODEL, [f"{'a.' * 60_000}a=1"], "an override reaches at most 32 levels down"),
}


@needs_proc
@pytest.mark.parametrize("name", LONG)
def test_names_and_overrides_of_any_length_are_refused(tmp_path: Path, name: str) -> None:
    text, overrides, message = LONG[name]
    (tmp_path / "bomb.yaml").write_text(CONFIG.format(text))
    words = [word for override in overrides for word in ("-s", override)]
    cost = cost_of(tmp_path, "check", "bomb.yaml", *words)
    assert (cost.code, message in cost.err) == (2, True), (cost.code, cost.err[:500])
    assert len(cost.err) < 10_000
    assert_cheap(cost)


@needs_proc
def test_a_list_of_hashes_of_gigabytes_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "line.csv").write_text("x,y\n" + "".join(f"{x},{x}\n" for x in range(40)))
    data = "data: {name: csv, file: line.csv, target: y, numeric: [x], task: regression}\n"
    (tmp_path / "bomb.yaml").write_text(CONFIG.format(data + "model: [linear: 1]\nloss: mse\n"))
    (tmp_path / "SHA256SUMS").touch()
    os.truncate(tmp_path / "SHA256SUMS", 3 << 30)
    cost = cost_of(tmp_path, "train", "bomb.yaml")
    assert (cost.code, "SHA256SUMS has more than 16777216 bytes" in cost.err) == (3, True), cost
    assert_cheap(cost)


@needs_proc
@pytest.mark.parametrize("command", ["check", "train"])
def test_own_code_of_a_gigabyte_is_not_read(tmp_path: Path, command: str) -> None:
    (tmp_path / "bomb.yaml").write_text(CONFIG.format("code: huge.py\nmodel: [linear: 2]\n"))
    (tmp_path / "huge.py").touch()
    os.truncate(tmp_path / "huge.py", 1 << 30)
    cost = cost_of(tmp_path, command, "bomb.yaml")
    message = "own code huge.py cannot be read: it has more than 1000000 bytes"
    assert (cost.code in (2, 3), message in cost.err) == (True, True), cost
    assert_cheap(cost)


@needs_proc
@pytest.mark.parametrize(
    ("key", "size", "message"),
    [
        ("n_layer", 1024, "config.json asks for 1024 layers, and there are 28 tensors"),
        ("n_embd", 1 << 22, "config.json describes another model"),
    ],
)
def test_a_published_model_that_asks_for_more_than_its_weights_is_refused(
    tmp_path: Path, key: str, size: int, message: str
) -> None:
    write_folder(tmp_path / "model", GPT2)
    (tmp_path / "model/config.json").write_text(json.dumps({**GPT2, key: size}))
    cost = cost_of(tmp_path, "predict", "model", "--prompt", "The")
    assert (cost.code, message in cost.err) == (7, True), cost
    assert_cheap(cost)
