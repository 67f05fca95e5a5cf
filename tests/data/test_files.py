from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from pathlib import Path

import pytest

from gradcli.data.files import SUMS, load, locate, read, regular_size
from gradcli.data.inflate import inflate, peek
from gradcli.errors import DataError


def test_a_missing_file_is_named_as_written_and_as_resolved(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist") as caught:
        locate("sub/none.csv", tmp_path)
    assert caught.value.exit_code == 3 and caught.value.code == "E301"
    assert "'sub/none.csv'" in caught.value.message
    assert str(tmp_path / "sub/none.csv") in caught.value.message


def test_the_nearest_name_is_told(tmp_path: Path) -> None:
    (tmp_path / "houses.csv").touch()
    with pytest.raises(DataError) as caught:
        locate("huoses.csv", tmp_path)
    assert caught.value.notes == ("did you mean houses.csv?",)
    with pytest.raises(DataError) as caught:
        locate("dta/houses.csv", tmp_path)
    assert caught.value.notes == (
        f"the folder {tmp_path / 'dta'} does not exist or cannot be read",
    )


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a directory, not a regular file"):
        locate(".", tmp_path)


def test_a_broken_link_is_refused_with_its_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("gone")
    with pytest.raises(DataError, match="broken link to 'gone'"):
        locate("link", tmp_path)


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    assert read(locate("link", tmp_path)) == b"abc"


def test_permission_denied_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"abc")

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        read(tmp_path / "file")


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="is a pipe, not a regular file"):
        read(tmp_path / "pipe")


def test_a_device_is_refused() -> None:
    with pytest.raises(DataError, match="is a device, not a regular file"):
        regular_size(Path("/dev/zero"))


def test_control_characters_in_a_name_are_escaped(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\\nb\\x1b") as caught:
        locate("a\nb\x1b[31m", tmp_path)
    assert "\n" not in caught.value.message and "\x1b" not in caught.value.message


def test_a_nul_in_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        locate("a\0b", tmp_path)


def test_a_listed_hash_is_checked(tmp_path: Path) -> None:
    data = b"content"
    digest = hashlib.sha256(data).hexdigest()
    (tmp_path / "file").write_bytes(data)
    (tmp_path / SUMS).write_text(f"{digest}  file\n")
    assert load(tmp_path / "file").sha256 == digest
    (tmp_path / "file").write_bytes(b"Content")
    with pytest.raises(DataError, match=f"expected {digest}") as caught:
        load(tmp_path / "file")
    assert caught.value.code == "E303"


@pytest.mark.parametrize("line", ["nonsense", "ab  file", "0" * 63 + "  file", "0" * 64])
def test_a_list_of_hashes_that_is_not_one_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / SUMS).write_text(line + "\n")
    with pytest.raises(DataError, match="SHA256SUMS:1"):
        load(tmp_path / "file")


def test_gzip_under_a_plain_name_is_unpacked_and_noted(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(gzip.compress(b"hello"))
    loaded = load(tmp_path / "plain")
    assert loaded.unpacked() == b"hello"
    assert loaded.notes() == ("plain is gzipped though its name does not say so",)


def test_several_gzip_members_are_one_content() -> None:
    data = gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two")
    assert inflate(data, 100, "f") == b"one two"
    assert peek(data, 5, "f") == b"one t"


def test_a_gzip_bomb_stops_at_the_limit() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    with pytest.raises(DataError, match="more than the 1000 bytes allowed"):
        inflate(bomb, 1000, "f")


def test_a_limit_that_is_just_reached_is_no_bomb() -> None:
    assert len(inflate(gzip.compress(bytes(1000)), 1000, "f")) == 1000


def test_a_wrong_crc_names_the_member() -> None:
    good = gzip.compress(b"first")
    bad = bytearray(gzip.compress(b"second"))
    bad[-6] ^= 1
    with pytest.raises(DataError, match=f"member at byte {len(good)} is damaged: its CRC"):
        inflate(good + bytes(bad), 100, "f")


def test_gzip_cut_anywhere_is_refused() -> None:
    data = gzip.compress(b"some content, some content")
    for length in range(2, len(data)):
        with pytest.raises(DataError, match="ends early"):
            inflate(data[:length], 100, "f")


def test_bytes_after_gzip_are_refused() -> None:
    with pytest.raises(DataError, match="1 byte after the gzip data"):
        inflate(gzip.compress(b"x") + b"!", 100, "f")


def test_many_tiny_members_are_refused() -> None:
    with pytest.raises(DataError, match="more than 4096 gzip members"):
        inflate(gzip.compress(b"") * 5000, 100, "f")


def test_deflate_can_not_pack_better_than_the_ratio_assumed() -> None:
    from gradcli.data.inflate import RATIO

    assert len(zlib.compress(bytes(10_000_000), 9)) * RATIO > 10_000_000
