"""Small files are read as they are; what is none is refused at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gradcli.train.directory import read_pointer
from gradcli.train.json_file import read_json
from gradcli.train.small_file import MOST_BYTES, read_small


def huge(file: Path) -> None:
    file.touch()
    os.truncate(file, 1 << 40)


def elsewhere(file: Path) -> None:
    file.with_name("elsewhere").write_bytes(b"{}")
    file.symlink_to("elsewhere")


def test_the_bytes_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(range(256)))
    assert read_small(file) == bytes(range(256))
    assert read_small(file, 256) == bytes(range(256))
    with pytest.raises(OSError, match="it has more than 255 bytes"):
        read_small(file, 255)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (os.mkfifo, "no regular file"),
        (Path.mkdir, "directory|no regular file"),
        (huge, f"more than {MOST_BYTES} bytes"),
    ],
)
def test_what_is_no_small_file(tmp_path: Path, make: Callable[[Path], None], reason: str) -> None:
    file = tmp_path / "last"
    make(file)
    with pytest.raises(OSError, match=reason):
        read_small(file)
    assert read_json(file) == {}
    assert read_pointer(tmp_path, "last") is None


def test_links_are_followed_unless_that_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "link"
    elsewhere(file)
    assert read_small(file) == b"{}"
    with pytest.raises(OSError, match="symbolic links"):
        read_small(file, follow=False)


def test_a_file_is_checked_before_it_is_read(tmp_path: Path) -> None:
    def check(status: os.stat_result) -> None:
        raise OSError(f"{status.st_size} bytes")

    (tmp_path / "file").write_bytes(b"abc")
    with pytest.raises(OSError, match="3 bytes"):
        read_small(tmp_path / "file", check=check)
