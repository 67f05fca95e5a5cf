"""Many files in one block of addresses: each is looked after, and none stays open."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from gradcli import engine
from gradcli.data.prepared import mapped as mapped_files
from gradcli.data.prepared.identity import FileIdentity
from gradcli.data.prepared.joined import map_joined, starts_of
from gradcli.data.prepared.mapped import check_mappings
from gradcli.data.tokens import TokenSource
from gradcli.engine import Tensor
from gradcli.errors import DataError

SIZE = 3 * os.sysconf("SC_PAGESIZE") + 10


@pytest.fixture(autouse=True)
def nothing_else_is_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_files, "_mappings", {})


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{number}.bin" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number + 1]) * SIZE)
        os.utime(path, (1e9, 1e9))
    return paths


def joined(paths: list[Path]) -> Tensor:
    return map_joined([(path, FileIdentity.of(path)) for path in paths], engine.uint8)


def test_bytes_lie_behind_each_other_from_pages_on(paths: list[Path]) -> None:
    tensor, starts = joined(paths), starts_of([SIZE] * 3)
    for number, start in enumerate(starts[:3]):
        assert set(tensor[start : start + SIZE].tolist()) == {number + 1}
    assert set(tensor[SIZE : starts[1]].tolist()) == {0}
    for path in paths:
        path.unlink()
    check_mappings(closely=True)
    assert tensor[starts[2]].item() == 3


def test_a_file_that_changed_is_named(paths: list[Path]) -> None:
    tensor = joined(paths)
    check_mappings(closely=True)
    with paths[1].open("r+b") as file:
        file.write(b"other")
    check_mappings(closely=False)
    with pytest.raises(DataError, match=r"1\.bin' was changed .*: it was written to"):
        check_mappings(closely=True)
    os.truncate(paths[2], 100)
    with pytest.raises(DataError, match=rf"2\.bin' was changed .*: it had {SIZE} bytes, and has"):
        check_mappings(closely=False)
    assert tensor[0].item() == 1


def test_one_that_was_cut_off_and_restored_between_two_looks_is_named(paths: list[Path]) -> None:
    tensor, content = joined(paths), paths[2].read_bytes()
    os.truncate(paths[2], 0)
    assert tensor[starts_of([SIZE] * 3)[2]].item() == 0
    paths[2].write_bytes(content)
    os.utime(paths[2], (1e9, 1e9))
    with pytest.raises(DataError, match=r"2\.bin' was changed .*: it was shorter than"):
        check_mappings(closely=False)


def test_one_that_changed_since_it_was_looked_at_is_refused(paths: list[Path]) -> None:
    files = [(path, FileIdentity.of(path)) for path in paths]
    paths[1].write_bytes(b"x" * SIZE)
    with pytest.raises(DataError, match=r"1\.bin' changed while it was opened"):
        map_joined(files, engine.uint8)


def test_there_may_be_more_files_than_a_process_may_open(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"{number:03}.bin").write_bytes(bytes([number]) * 40)
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    handle = os.open(tmp_path, os.O_RDONLY)  # the lowest number that is free
    os.close(handle)
    resource.setrlimit(resource.RLIMIT_NOFILE, (handle + 50, usual[1]))
    try:
        source = TokenSource(
            file=str(tmp_path / "*.bin"), type="uint8", context=9, split={"train": "100%"}
        )
        loaded = source.load()
        assert len(dict(loaded.sha256)) == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    inputs, _ = loaded.splits["train"].batch(engine.tensor([4 * 199, 4 * 77 + 2]))
    assert inputs.tolist() == [[199] * 9, [77] * 9]
