"""Files are mapped as they lie, and one that changes under a mapping is named."""

from __future__ import annotations

import errno
import os
from array import array
from pathlib import Path

import pytest

from gradcli import engine
from gradcli.data import hashes
from gradcli.data.prepared import mapped as mapped_files
from gradcli.data.prepared.mapped import check_mappings, map_file
from gradcli.engine import Tensor
from gradcli.errors import DataError


@pytest.fixture(autouse=True)
def nothing_else_is_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_files, "_mappings", {})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "numbers.bin"
    path.write_bytes(b"head" + array("f", range(1000)).tobytes())
    os.utime(path, (1e9, 1e9))
    return path


@pytest.fixture
def mapped(path: Path) -> Tensor:
    return map_file(path, engine.float32, (100, 10), 4)


def test_numbers_lie_where_they_were_and_nobody_writes_them(mapped: Tensor) -> None:
    assert mapped[99].tolist() == list(range(990, 1000))
    assert not mapped.array.storage.writable


def test_a_file_that_nobody_touched_passes(mapped: Tensor, path: Path) -> None:
    path.chmod(0o600)
    for lookout in hashes.lookouts:
        lookout(True)
    assert mapped.shape == (100, 10)


def test_a_file_that_was_overwritten_is_named(mapped: Tensor, path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(400)
        file.write(b"other numbers")
    check_mappings(closely=False)
    with pytest.raises(
        DataError, match=r"numbers.bin' was changed .*: it was written to"
    ) as raised:
        check_mappings(closely=True)
    assert raised.value.exit_code == 3
    assert mapped.shape == (100, 10)


def test_a_file_that_another_one_took_the_place_of_is_named(mapped: Tensor, path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    os.utime(other, (1e9, 1e9))
    other.replace(path)
    with pytest.raises(DataError, match="another file lies in its place"):
        check_mappings(closely=True)
    assert mapped.shape == (100, 10)


def test_a_file_that_grew_is_named(mapped: Tensor, path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(DataError, match="it had 4004 bytes, and has 4008"):
        check_mappings(closely=True)
    assert mapped.shape == (100, 10)


def test_a_file_that_was_removed_keeps_what_was_mapped(mapped: Tensor, path: Path) -> None:
    path.unlink()
    check_mappings(closely=True)
    assert mapped[99].tolist() == list(range(990, 1000))


def test_files_that_nobody_maps_any_more_may_change(path: Path) -> None:
    tensor = map_file(path, engine.float32, (100, 10), 4)
    del tensor
    path.write_bytes(b"")
    check_mappings(closely=True)


def test_a_file_that_was_shorter_for_a_while_is_named(mapped: Tensor, path: Path) -> None:
    content = path.read_bytes()
    os.truncate(path, 0)
    assert mapped[99, 0].item() == 0.0
    path.write_bytes(content)
    with pytest.raises(DataError, match="it was shorter than 4004 bytes for a while"):
        check_mappings(closely=False)


def test_a_file_that_its_disk_no_longer_knows_is_named(
    mapped: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stale(self: object) -> int:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(mapped_files.MappedMemory, "size", stale, raising=False)
    with pytest.raises(DataError, match="it can no longer be asked for: Stale file handle"):
        check_mappings(closely=False)
    assert mapped.shape == (100, 10)
