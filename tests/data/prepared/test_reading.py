"""A large file is read once in the background, and known again with what was found out."""

from __future__ import annotations

import hashlib
import math
import os
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradcli.data.prepared import identity, notes, progress, reading
from gradcli.data.prepared.identity import FileIdentity, Remembering
from gradcli.data.prepared.number_checks import Below, FiniteCheck
from gradcli.data.prepared.reading import FileReading, begin
from gradcli.errors import DataError

NUMBERS = 5000


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(reading, "BLOCK", 1 << 10)
    monkeypatch.setattr(identity, "YOUNG", 0)
    path = tmp_path / "x.bin"
    write(path, array("f", range(NUMBERS)))
    return path


def write(path: Path, numbers: Any, head: bytes = b"head") -> None:
    path.write_bytes(head + numbers.tobytes())
    os.utime(path, (1e9, 1e9))


def read(path: Path, check: Any = None) -> FileReading:
    one = FileReading(path, FileIdentity.of(path), check)
    begin([one])
    return one


def test_its_hash_is_that_of_its_bytes(path: Path) -> None:
    one = read(path, FiniteCheck(4, 10))
    assert one.result() == hashlib.sha256(path.read_bytes()).hexdigest()
    assert one.ready
    assert one.fault is None


def test_a_second_start_reads_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sha256 = read(path, FiniteCheck(4, 10)).result()
    monkeypatch.setattr(FileReading, "_stream", unwanted)
    again = FileReading(path, FileIdentity.of(path), FiniteCheck(4, 10))
    assert again.ready
    assert again.result() == sha256
    assert FileReading(path, FileIdentity.of(path), None).ready


def unwanted(self: FileReading) -> str:
    raise AssertionError(f"{self.path} was read again")


def test_another_question_reads_it_again_and_both_answers_are_kept(path: Path) -> None:
    read(path, FiniteCheck(4, 10)).result()
    other = FileReading(path, FileIdentity.of(path), Below(4, 4, 1 << 31, "number"))
    assert not other.ready
    begin([other])
    other.result()
    for check in (FiniteCheck(4, 10), Below(4, 4, 1 << 31, "number")):
        assert FileReading(path, FileIdentity.of(path), check).ready


def test_verify_data_reads_it_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read(path).result()
    monkeypatch.setattr(identity, "verify_data", True)
    assert not FileReading(path, FileIdentity.of(path), None).ready


@pytest.mark.parametrize("place", [0, 255, 256, NUMBERS - 1])
def test_a_number_that_is_none_is_named_with_its_sample(path: Path, place: int) -> None:
    numbers = array("f", range(NUMBERS))
    numbers[place] = math.nan
    write(path, numbers)
    one = read(path, FiniteCheck(4, 10))
    with pytest.raises(DataError, match=rf"x.bin: sample {place // 10} holds nan") as raised:
        one.result()
    assert raised.value.exit_code == 3
    assert one.fault is raised.value
    assert not FileReading(path, FileIdentity.of(path), FiniteCheck(4, 10)).ready


def test_a_file_that_is_edited_meanwhile_is_refused(path: Path) -> None:
    one = FileReading(path, FileIdentity.of(path), None)
    write(path, array("f", range(NUMBERS + 1)))
    begin([one])
    with pytest.raises(DataError, match="changed while it was being read"):
        one.result()


def test_a_file_that_is_gone_is_a_sentence(path: Path) -> None:
    one = FileReading(path, FileIdentity.of(path), None)
    path.unlink()
    begin([one])
    with pytest.raises(DataError, match="cannot be read: No such file"):
        one.result()


def test_it_is_compared_with_its_sums(path: Path) -> None:
    sums = path.with_name("SHA256SUMS")
    sums.write_text(f"{'0' * 64}  x.bin\n")
    with pytest.raises(DataError, match="is not the file that SHA256SUMS"):
        read(path).result()
    sums.write_text(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  x.bin\n")
    assert read(path).result()


def test_whoever_waits_tells_how_far_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[Any, ...]] = []
    monkeypatch.setattr(progress, "watcher", lambda *words: told.append(words))
    one = FileReading(path, FileIdentity.of(path), None)
    later: Callable[[float], bool] = one._end.wait

    def wait(seconds: float) -> bool:
        one.read(Remembering(1))
        return later(seconds)

    monkeypatch.setattr(one._end, "wait", wait)
    one.result()
    assert told[0] == ("reading x.bin", 0, path.stat().st_size, "B")
    assert told[-1][0] == "reading x.bin"


def test_whatever_ends_the_reading_is_told_to_whoever_waits(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(self: FileReading) -> str:
        raise MemoryError

    monkeypatch.setattr(FileReading, "_stream", no_memory)
    with pytest.raises(MemoryError):
        read(path).result()


def test_hashes_of_many_files_are_written_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[int] = []
    usual = notes.write
    monkeypatch.setattr(identity, "_OFTEN", math.inf)
    monkeypatch.setattr(identity, "YOUNG", 0)
    monkeypatch.setattr(
        notes, "write", lambda path, entries: (writes.append(len(entries)), usual(path, entries))
    )
    paths = [tmp_path / f"{number}.bin" for number in range(20)]
    for path in paths:
        path.write_bytes(path.name.encode())
        os.utime(path, (1e9, 1e9))
    readings = [FileReading(path, FileIdentity.of(path), None) for path in paths]
    begin(readings)
    hashes = [one.result() for one in readings]
    again = [FileReading(path, FileIdentity.of(path), None) for path in paths]
    assert all(one.ready for one in again)
    assert [one.result() for one in again] == hashes
    assert writes == [20]
