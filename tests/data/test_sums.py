"""SHA256SUMS: every form that sha256sum -c takes, and names that lead elsewhere."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gradcli.data.files import SUMS, load
from gradcli.errors import DataError

CONTENT = b"content"
RIGHT, WRONG = hashlib.sha256(CONTENT).hexdigest(), "0" * 64


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "some" / "data"
    path.mkdir(parents=True)
    (path / "x").write_bytes(CONTENT)
    return path


def check(folder: Path, line: str, name: str = "x") -> None:
    """A right hash in this line is compared, and a wrong one is refused."""
    for sha256 in (RIGHT, RIGHT.upper()):
        (folder / SUMS).write_bytes(os.fsencode(line.format(sha256)))
        assert load(folder / name).notes() == ()
    (folder / SUMS).write_bytes(os.fsencode(line.format(WRONG)))
    with pytest.raises(DataError, match=f"expected {WRONG}"):
        load(folder / name)


@pytest.mark.parametrize(
    "line",
    [
        "{}  x\n",
        "{} *x\n",
        "{} x",
        "{}  ./x\n",
        "{}  data/x\n",
        "{} *some/data/x\n",
        "{}  ../data/x\n",
        "{}  ././/x\n",
        "{}  x\r\n",
        "\r\n# a comment\n\n  {}  x\r\n",
        "\ufeff{}  x\n",
        "SHA256 (x) = {}\n",
        "SHA256 (data/x) = {}\r\n",
    ],
)
def test_every_form_of_a_line_is_compared(folder: Path, line: str) -> None:
    check(folder, line)


def test_an_absolute_name_is_compared(folder: Path) -> None:
    check(folder, f"{{}}  {folder}/x\n")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a b (1).csv", "{}  a b (1).csv\n"),
        ("a\nb", "\\{}  a\\nb\n"),
        ("a\\b", "\\{}  data/a\\\\b\n"),
        ("a\\b", "\\SHA256 (a\\\\b) = {}\n"),
        ("ä\u2028", "{}  ä\u2028\n"),
        ("a\udcff", "{}  a\udcff\n"),
        ("*x", "{}  *x\n"),
    ],
)
def test_odd_names_are_compared(folder: Path, name: str, line: str) -> None:
    (folder / name).write_bytes(CONTENT)
    check(folder, line, name)


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="needs sha256sum")
@pytest.mark.parametrize("flags", [[], ["-b"], ["--tag"]])
def test_what_sha256sum_writes_is_compared(folder: Path, flags: list[str]) -> None:
    names = ["x", "a\nb", "a\\b", "a b", "é"]
    for name in names:
        (folder / name).write_bytes(CONTENT)
    for here in (folder, folder.parent, folder.parents[1]):
        paths = [str((folder / name).relative_to(here)) for name in names]
        command = ["sha256sum", *flags, *paths]
        done = subprocess.run(command, cwd=here, capture_output=True, check=True)
        (folder / SUMS).write_bytes(done.stdout)
        for name in names:
            (folder / name).write_bytes(CONTENT)
            load(folder / name)
            (folder / name).write_bytes(b"changed")
            with pytest.raises(DataError, match="is not the file that SHA256SUMS beside it lists"):
                load(folder / name)
            (folder / name).write_bytes(CONTENT)


@pytest.mark.parametrize("name", ["/elsewhere/data/x", "other/x", "../x", "data/data/x"])
def test_a_file_of_another_folder_is_not_checked_and_noted(folder: Path, name: str) -> None:
    (folder / SUMS).write_text(f"{WRONG}  {name}\n")
    (note,) = load(folder / "x").notes()
    assert note == f"x is not checked: SHA256SUMS beside it lists '{name}' instead"
    (folder / SUMS).write_text(f"{WRONG}  {name}\n{RIGHT}  x\n")
    assert load(folder / "x").notes() == ()


@pytest.mark.parametrize("name", ["train/x", "data/x"])
def test_a_file_of_an_inner_folder_is_that_one(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir()
    (folder / name).write_bytes(b"another")
    (folder / SUMS).write_text(f"{WRONG}  {name}\n")
    assert load(folder / "x").notes() == ()


def test_a_folder_that_is_reached_by_a_link_is_the_same(folder: Path) -> None:
    link = folder.parents[1] / "link"
    link.symlink_to(folder)
    check(link, "{}  link/x\n")
    check(link, "{}  data/x\n")


def test_two_hashes_of_one_file_are_refused(folder: Path) -> None:
    (folder / SUMS).write_text(f"{RIGHT}  x\n# again\n{WRONG}  ./x\n")
    with pytest.raises(DataError, match="SHA256SUMS:3: 'x' has another sha256 in line 1"):
        load(folder / "x")


@pytest.mark.parametrize(
    "line", ["{}\0x", "{}  ", "{}  x\0", "{}0  x", "\\{}  a\\tb", "\\{}  x\\", "MD5 (x) = {}"]
)
def test_what_is_no_entry_is_refused(folder: Path, line: str) -> None:
    (folder / SUMS).write_text("# a list\n" + line.format(RIGHT))
    with pytest.raises(DataError, match="SHA256SUMS:2: expected 64 hex digits") as caught:
        load(folder / "x")
    assert caught.value.code == "E303"
