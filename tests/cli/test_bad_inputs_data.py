"""Rows 25 to 36 and 41, wrong data: file, place and number are named; exit 3 and no trace."""

from __future__ import annotations

import gzip
import hashlib
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from points import Ended
from refusals import gradcli, refused

from gradcli.data.cifar import Cifar10
from gradcli.data.mnist import FILES

__all__ = ["gradcli", "refused"]

Refused = Callable[..., Ended]

CONFIG = """\
gradcli: 1
name: rows
data: {DATA}
model: [flatten, linear: $data.classes]
loss: cross_entropy
optim: {name: sgd, lr: 0.1}
train: {epochs: 1, batch: 4}
"""
IDX = "{name: idx, images: images, labels: labels}"
CSV = "{name: csv, file: table.csv, target: y, numeric: [n]}"


def idx(shape: tuple[int, ...], payload: bytes = b"", kind: int = 0x08) -> bytes:
    """A header of this shape and type, then the payload."""
    return bytes([0, 0, kind, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + payload


IMAGES, LABELS = idx((4, 2, 2), bytes(range(16))), idx((4,), bytes([0, 1, 2, 1]))
TABLE = b"y,n\n" + b"a,1\nb,2\n" * 10


def write(data: str = IDX, **contents: bytes) -> None:
    """rows.yaml and the files it names, two of them good unless given."""
    Path("rows.yaml").write_text(CONFIG.replace("{DATA}", data))
    usual = {"images": IMAGES, "labels": LABELS, "table.csv": TABLE}
    for name, content in {**usual, **contents}.items():
        Path(name).write_bytes(content)


def train_on(data: str = IDX, **contents: bytes) -> tuple[str, str]:
    """The command line that trains on these files."""
    write(data, **contents)
    return ("train", "rows.yaml")


def test_a_file_that_is_not_there_or_no_file(refused: Refused, monkeypatch) -> None:
    command = train_on(CSV)
    path = Path("table.csv")
    path.unlink()
    ended = refused(3, "does not exist", *command)
    assert "'table.csv'" in ended.err
    assert str(path.absolute()) in ended.err
    path.mkdir()
    refused(3, "is a directory, not a regular file", *command)
    path.rmdir()
    path.symlink_to("nowhere.csv")
    refused(3, "is a broken link to 'nowhere.csv'", *command)
    path.unlink()
    path.write_bytes(TABLE)

    usual = os.open

    def forbidden(name: object, *rest: int) -> int:
        if Path(str(name)).name == path.name:
            raise PermissionError(13, "Permission denied")
        return usual(name, *rest)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "open", forbidden)
    refused(3, "cannot be read: Permission denied", *command)


def test_gzip_under_a_plain_name_is_noted_by_every_command(gradcli: Refused) -> None:
    command = train_on(images=gzip.compress(IMAGES))
    note = "images is gzipped though its name does not say so"
    for arguments in (
        (*command, "--max-steps", "0"),
        ("eval", "last", "--split", "train"),
        ("predict", "last", "images"),
        ("resume", "last"),
    ):
        ended = gradcli(*arguments)
        assert (ended.code, ended.err.count(note)) == (0, 1), (arguments, ended.err)


BAD_IDX = {
    "27 truncated by one byte": (IMAGES[:-1], "32 bytes", "31"),
    "27 one trailing byte": (IMAGES + b"x", "32 bytes", "33"),
    "28 wrong magic": (b"\x89PNG\r\n\x1a\n" + IMAGES, "found 89 50 4e 47", ""),
    "28 unknown type": (idx((4, 2, 2), bytes(16), kind=0x0A), "unknown IDX type 0a", "00 00 0a 03"),
    "28 no dimensions": (bytes([0, 0, 8, 0]), "00 00 08 00 has 0 dimensions", ""),
    "28 255 dimensions": (bytes([0, 0, 8, 255]) + bytes(1020), "has 255 dimensions", "00 00 08 ff"),
    "28 2^31 x 2^31": (idx((4, 2**31, 2**31)), f"expected {2**64 + 16} bytes", "got 16"),
    "29 fewer labels": (idx((5, 2, 2), bytes(20)), "5 images in", "4 labels in"),
    "31 bomb": (gzip.compress(IMAGES + bytes(50_000_000), 1), "more than the 32 bytes", ""),
    "31 bad crc": (gzip.compress(IMAGES)[:-8] + bytes(8), "member at byte 0 is damaged", "CRC"),
    "31 cut": (gzip.compress(IMAGES)[:-9], "gzip data ends early, at byte", ""),
    "32 empty": (idx((0, 2, 2)), "the dataset is empty: uint8 0 x 2 x 2", ""),
    "32 no pixels": (idx((4, 0, 2)), "4 x 0 x 2 holds no samples", ""),
}


@pytest.mark.parametrize("name", BAD_IDX)
def test_wrong_images_are_refused_with_the_numbers(refused: Refused, name: str) -> None:
    images, message, more = BAD_IDX[name]
    ended = refused(3, message, *train_on(images=images))
    assert more in ended.err
    assert "images" in ended.err


@pytest.mark.parametrize(
    ("labels", "value"),
    [(idx((4,), bytes([0, 255, 2, 9])), 255), (idx((4,), b"\0\xff\1\1", kind=0x09), -1)],
    ids=["255", "-1"],
)
def test_a_label_outside_the_classes_names_the_first_sample(
    refused: Refused, labels: bytes, value: int
) -> None:
    data = IDX.replace("}", ", classes: 10}")
    refused(3, f"sample 1 has label {value}, expected 0", *train_on(data, labels=labels))


@pytest.mark.parametrize("space", ["\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\xa0"])
def test_odd_spaces_in_the_header_of_an_array_are_refused(refused: Refused, space: str) -> None:
    """Python's `\\s` takes them for white space, and its `int` does not."""
    for number, written in enumerate(("({}4,)", "(4{},)", "({}{}4,)")):
        shape = written.format(space, space)
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode("latin-1")
        name = f"x{number}.npy"
        content = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + bytes(16)
        arguments = train_on(f"{{name: npy, inputs: {name}, targets: {name}}}", **{name: content})
        refused(3, f"{name}: its header is no dict of descr, fortran_order and shape", *arguments)


def test_a_bomb_among_tables_is_refused(refused: Refused) -> None:
    table = gzip.compress(TABLE + b"a,1\n" * (3 << 19))
    refused(3, "unpack to more than 4 MiB", *train_on(CSV, **{"table.csv": table}))


def test_two_gzip_members_and_one_sample_are_accepted(gradcli: Refused) -> None:
    two = gzip.compress(IMAGES[:9]) + gzip.compress(IMAGES[9:])
    assert gradcli(*train_on(images=two)).code == 0
    one = {"images": idx((1, 2, 2), bytes(4)), "labels": idx((1,), b"\1")}
    assert gradcli(*train_on(**one)).code == 0


BAD_TABLES = {
    "32 empty": (b"", "the table is empty"),
    "32 only a header": (b"y,n\n", "the table is empty"),
    "32 one row for three splits": (b"y,n\na,1\n", "of 1 sample; every part needs one"),
    "33 ragged": (b"y,n\na,1\nb\n", "row 3, column 2: 1 cell, the header has 2"),
    "33 unclosed quote": (b'y,n\na,"1\n', "row 2, column 2: a quote is opened and never closed"),
    "33 NUL": (b"y,n\na,1\0\n", "row 2, column 2: a NUL character"),
    "33 field of 100 MB": (b"y,n\na," + b"1" * 100_000_000, "row 2, column 2: a cell of more than"),
    "36 no header": (b"a,1\nb,2\n", "no column is called 'n', 'y'"),
    "36 duplicated": (b"y,n,n\na,1,1\n", "column 'n' appears twice"),
    "36 missing": (b"y,m\na,1\n", "no column is called 'n'"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_wrong_table_is_refused_with_its_place(refused: Refused, name: str) -> None:
    table, message = BAD_TABLES[name]
    ended = refused(3, message, *train_on(CSV, **{"table.csv": table}))
    if name.startswith("36"):
        assert "needed are: n, y" in ended.err
        assert "the file has: " in ended.err


def test_a_split_that_leaves_a_side_empty_is_refused(refused: Refused) -> None:
    data = CSV.replace("}", ", split: {train: 20, val: 0}}")
    refused(3, "split leaves val empty: train 20, val 0 of 20 samples", *train_on(data))


GOOD_TABLES = {
    "byte order mark": b"\xef\xbb\xbf" + TABLE,
    "CRLF": TABLE.replace(b"\n", b"\r\n"),
    "quoted newline": TABLE.replace(b"a,", b'"a\nc",'),
    "trailing blank lines": TABLE + b"\n\r\n",
    "other order": b"n,x,y\n" + b"1,0,a\n2,0,b\n" * 10,
}


@pytest.mark.parametrize("name", GOOD_TABLES)
def test_a_table_of_another_form_is_accepted(gradcli: Refused, name: str) -> None:
    assert gradcli(*train_on(CSV, **{"table.csv": GOOD_TABLES[name]})).code == 0


@pytest.mark.parametrize("cell", ["abc", "", '"1,5"', "nan", "inf", "1e999"])
def test_a_cell_that_is_no_number_is_shown(refused: Refused, cell: str) -> None:
    table = TABLE + f"b,{cell}\n".encode()
    ended = refused(3, "row 22, column 2 (n)", *train_on(CSV, **{"table.csv": table}))
    assert cell.strip('"') in ended.err


def test_nan_is_missing_where_the_config_allows_it(gradcli: Refused) -> None:
    data = CSV.replace("}", ", missing: drop}")
    ended = gradcli(*train_on(data, **{"table.csv": TABLE + b"b,nan\nb,\n"}))
    assert ended.code == 0
    assert "2 of 22 rows" in ended.err


# 41: what is no file. A pipe that is opened stalls until somebody writes to it.


@pytest.mark.parametrize(
    "data",
    [
        "{name: csv, file: pipe, target: y, numeric: [n]}",
        "{name: text, file: pipe}",
        "{name: idx, images: images, labels: pipe}",
        "{name: npy, inputs: pipe, targets: labels}",
        "{name: npz, file: pipe, inputs: x, targets: y}",
        "{name: mnist, dir: published}",
        "{name: cifar10, dir: published}",
        "{name: image_folder, dir: pictures, size: 4}",
    ],
)
def test_a_pipe_is_never_opened(refused: Refused, data: str) -> None:
    command = train_on(data)
    published = [f"published/{name}" for name in (*FILES.values(), *Cifar10.TRAIN, Cifar10.TEST)]
    for name in ("pipe", *published, "pictures/cat/1.png"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(name)
    refused(3, "is a pipe, not a regular file", *command)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_never_read(refused: Refused, device: str) -> None:
    refused(
        3,
        f"'{device}' is a device, not a regular file",
        *train_on(CSV.replace("table.csv", device)),
    )


def test_new_data_are_no_pipe_either(gradcli: Refused, refused: Refused) -> None:
    assert gradcli(*train_on(CSV)).code == 0
    os.mkfifo("new.csv")
    for command in (("predict", "last", "new.csv"), ("eval", "last", "--data", "new.csv")):
        refused(3, "'new.csv' is a pipe, not a regular file", *command)
    refused(7, "there is no file new.csv", *train_on(CSV), "-s", "pretrained.from=new.csv")


# 40: SHA256SUMS beside the data.


def sums_beside(line: str) -> tuple[str, str]:
    """The command line, in a folder with this list; {0} is the right hash, {1} the folder."""
    command = train_on(CSV)
    text = line.format(hashlib.sha256(TABLE).hexdigest(), Path.cwd().name)
    Path("SHA256SUMS").write_text(text)
    return command


@pytest.mark.parametrize("line", ["{0}  {1}/table.csv\r\n", "{0} *./table.csv\n"])
def test_sums_with_paths_are_compared(gradcli: Refused, line: str) -> None:
    assert gradcli(*sums_beside(line)).code == 0
    ended = gradcli(*sums_beside(line.replace("{0}", "0" * 64)))
    assert (ended.code, "is not the file that SHA256SUMS beside it lists" in ended.err) == (3, True)


def test_sums_of_a_file_elsewhere_are_noted(gradcli: Refused) -> None:
    ended = gradcli(*sums_beside("0" * 64 + "  /old/table.csv\n"))
    assert ended.code == 0
    assert "table.csv is not checked: SHA256SUMS beside it lists '/old/table.csv'" in ended.err


@pytest.mark.parametrize("line", ["{0}", "{0}  table.csv\n{0}0  x", "d41d8c  table.csv"])
def test_sums_that_are_none_are_refused(refused: Refused, line: str) -> None:
    refused(3, "expected 64 hex digits, two spaces and the name of a file", *sums_beside(line))
