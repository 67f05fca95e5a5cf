"""Rows 37 to 39, pictures: `gradcli train` names the file and the reason, or says what it does."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from png_bytes import png, rows_of
from points import Ended
from refusals import gradcli, refused

__all__ = ["gradcli", "refused"]

Image = pytest.importorskip("PIL.Image")
Refused = Callable[..., Ended]

CONFIG = """\
gradcli: 1
name: pets
data: {name: image_folder, dir: pets, size: 4, color: gray, split: {train: 60%, val: 40%}}
model: [flatten, linear: $data.classes]
loss: cross_entropy
optim: {name: sgd, lr: 0.1}
train: {epochs: 1, batch: 2}
"""
TRAIN = ("train", "pets.yaml")


def drawn(width: int = 4, height: int = 4, color: int = 0, depth: int = 8) -> bytes:
    """A picture whose grays rise."""
    channels = {0: 1, 2: 3}[color]
    top = (1 << depth) - 1
    row = [[top * x // width] * channels for x in range(width)]
    return png(width, height, color, depth, rows_of([row] * height, depth))


@pytest.fixture
def pets(gradcli: Refused) -> None:
    """pets.yaml, and two classes of two pictures."""
    Path("pets.yaml").write_text(CONFIG)
    for name in ("cat/1.png", "cat/2.png", "dog/1.png", "dog/2.png"):
        Path("pets", name).parent.mkdir(parents=True, exist_ok=True)
        Path("pets", name).write_bytes(drawn())


WHOLE = drawn(40, 40)
BROKEN = {
    "cut in the middle": (WHOLE[:60], "it ends at byte 60, inside its chunk IDAT"),
    "cut before its last chunk": (WHOLE[:-12], "before its last chunk"),
    "a wrong checksum": (png(4, 4, 0, 8, bytes(20), checksum=7), "the checksum of its chunk IDAT"),
    "rows that are missing": (png(4, 4, 0, 8, bytes(15)), "its rows need 20 bytes, 15 are there"),
    "no palette": (png(4, 4, 3, 8, bytes(20)), "a palette that is not there"),
    "no width": (png(0, 4, 0, 8, b""), "it has 0 x 4 pixels"),
    "too large": (png(60000, 60000, 2, 8, b""), "60000 x 60000 pixels; at most 178956970 are read"),
    "a page": (b"\n<!DOCTYPE html><title>404</title>", "it is an HTML page"),
    "another picture": (b"II*\0", "it is a TIFF picture"),
    "half a GIF": (b"GIF89a", "it begins like a GIF picture, but its header is damaged"),
    "half a WebP": (b"RIFF\x08\0\0\0WEBP", "it is a WebP without the header of a picture"),
    "run lengths": (b"BM" + bytes(12) + b"\x28" + bytes(15) + b"\1", "packed by run lengths"),
    "empty": (b"", "GIF picture: it is none of these"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_picture_that_is_none_is_named(refused: Refused, pets: None, case: str) -> None:
    content, reason = BROKEN[case]
    Path("pets/dog/2.png").write_bytes(content)
    ended = refused(3, reason, *TRAIN)
    assert "pets/dog/2.png: " in ended.err


def test_pictures_of_every_kind_are_read_alike(gradcli: Refused, pets: None) -> None:
    """Interlaced, of 16 bits, with a palette, in colour: the same weights as of plain grays."""
    weights = gradcli(*TRAIN, "--json").json["weights_sha256"]
    row = [[255 * x // 4] for x in range(4)]
    rows = [row] * 4
    palette = bytes(value for (value,) in row for _ in range(3))
    fine = [[[value << 8 | 0x5A] for (value,) in row]] * 4
    for name, content in {
        "cat/1.png": png(4, 4, 0, 8, rows_of(rows, 8, interlaced=True), interlaced=True),
        "cat/2.png": png(4, 4, 0, 16, rows_of(fine, 16)),
        "dog/1.png": png(4, 4, 3, 8, rows_of([[[x] for x in range(4)]] * 4, 8), palette=palette),
        "dog/2.png": png(4, 4, 2, 8, rows_of([[value * 3 for value in row]] * 4, 8)),
    }.items():
        Path("pets", name).write_bytes(content)
    assert gradcli(*TRAIN, "--json").json["weights_sha256"] == weights


def test_what_is_lost_of_pictures_is_told_once(gradcli: Refused, pets: None) -> None:
    for name in ("cat/1.png", "dog/1.png", "dog/2.png"):
        Path("pets", name).write_bytes(drawn(depth=16))
    note = "3 pictures are of 16 bits, of which the upper 8 are taken"
    assert gradcli(*TRAIN).err.count(note) == 1
    Path("pets/cat/2.png").write_bytes(png(4, 4, 4, 8, rows_of([[[9, 0]] * 4] * 4, 8)))
    ended = gradcli("eval", "last", "--data", "pets")
    assert note in ended.err and "1 picture is transparent in places, where" in ended.err


def test_hidden_files_are_passed_over(gradcli: Refused, pets: None) -> None:
    weights = gradcli(*TRAIN, "--json").json["weights_sha256"]
    Path("pets/.git").mkdir()
    for name in (".DS_Store", "cat/.DS_Store", "cat/._1.png", "dog/.hidden.png"):
        Path("pets", name).write_bytes(b"no picture")
    ended = gradcli(*TRAIN, "--json")
    assert (ended.json["weights_sha256"], "left out" in ended.err) == (weights, False)


def test_a_class_without_pictures_is_refused(refused: Refused, pets: None) -> None:
    Path("pets/bird").mkdir()
    refused(3, "pets/bird holds no picture; .png, .jpg, .jpeg, .webp, .bmp, .gif are read", *TRAIN)
    Path("pets/bird/.hidden.png").write_bytes(drawn())
    Path("pets/bird/notes.txt").touch()
    refused(3, "pets/bird holds no picture", *TRAIN)


ODD_NAMES = {
    "new\nline": "new\\nline",
    "caf\udce9": "caf\\xe9",  # the byte e9, which is no UTF-8
    "\x1b[31m red": "\\x1b[31m red",
    "\u96ea \U0001f408": "\u96ea \U0001f408",
    'a,b "c"': 'a,b "c"',
}


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_shown_escaped(gradcli: Refused, pets: None, name: str) -> None:
    escaped, file = ODD_NAMES[name], Path("pets", name, f"{name}.png")
    file.parent.mkdir()
    file.write_bytes(drawn())
    assert gradcli(*TRAIN).code == 0
    for command in (("eval", "last", "--data", "pets"), ("resume", "last")):
        assert gradcli(*command).code == 0, command
    ended = gradcli("predict", "last", str(file), "--top", "3")
    assert (ended.code, ended.out.count("\n")) == (0, 1)
    assert ended.out.startswith(f"pets/{escaped}/{escaped}.png\t0\t")
    assert f"\t{escaped}\t" in ended.out
    for out in ("out.csv", "out.jsonl"):
        assert gradcli("predict", "last", str(file), "--out", out).code == 0
    (row,) = csv.DictReader(io.StringIO(Path("out.csv").read_text("utf-8")))
    assert json.loads(Path("out.jsonl").read_text("utf-8"))["file"] == row["file"]
    assert row["file"].encode("utf-8") and f"probabilities.{row['label']}" in row
    file.write_bytes(b"")
    ended = gradcli(*TRAIN)
    assert (ended.code, f"{escaped}.png: not a whole PNG" in ended.err) == (3, True)


def test_pictures_of_different_sizes_need_a_size(refused: Refused, pets: None) -> None:
    Path("pets/dog/2.png").write_bytes(drawn(9, 7))
    Path("pets.yaml").write_text(CONFIG.replace("size: 4, ", ""))
    refused(2, "size", *TRAIN)


def test_pictures_of_different_sizes_are_made_one_size(gradcli: Refused, pets: None) -> None:
    Path("pets/dog/2.png").write_bytes(drawn(9, 7))
    Path("new.png").write_bytes(drawn(3, 50))
    assert gradcli(*TRAIN).code == 0
    assert gradcli("predict", "last", "new.png").code == 0
