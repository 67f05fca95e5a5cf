"""A prepared set is written once, mapped, and never believed where it was damaged."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import time
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gradcli import engine
from gradcli.data.prepared import identity, mapped, progress, sets
from gradcli.data.prepared.identity import sha256_of
from gradcli.data.prepared.sets import Damage, PreparedSet, Recipe, _hash, prepared, read_facts
from gradcli.data.prepared.writer import Writer
from gradcli.errors import DataError, RunError

ROWS = 1000


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(identity, "YOUNG", 0)  # or it would be hashed each time
    path = tmp_path / "numbers.csv"
    path.write_text("".join(f"{row}\n" for row in range(ROWS)))
    os.utime(path, (1e9, 1e9))
    return path


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(progress, "teller", lines.append)
    return lines


@pytest.fixture
def verifying() -> Iterator[None]:
    identity.verify_data = True
    yield
    identity.verify_data = False


class Preparing:
    """Prepares one file of numbers, and counts how often it had to."""

    def __init__(self, source: Path, cache: Path) -> None:
        self.source, self.cache = source, cache
        self.times = 0

    def __call__(self, **keys: Any) -> PreparedSet:
        recipe = Recipe(
            "test", 1, keys, {"train": (self.source, sha256_of(self.source, cache=self.cache))}
        )
        return prepared(recipe, self.write, self.cache)

    def write(self, writer: Writer) -> Mapping[str, Any]:
        self.times += 1
        numbers = array("f", map(float, self.source.read_text().split()))
        column = writer.array("column", engine.float32)
        pairs = writer.fixed("pairs", "int64", (len(numbers), 2))
        watched = writer.progress(len(numbers), "row")
        for at, number in enumerate(numbers):
            column.append(array("f", [number]))
            pairs[2 * at : 2 * at + 2] = memoryview(array("q", [at, -at]))
            watched.advance(1)
        return {"rows": len(numbers), "first": numbers[0]}


@pytest.fixture
def prepare(source: Path, tmp_path: Path) -> Preparing:
    return Preparing(source, tmp_path / "cache")


def check(one: PreparedSet) -> None:
    assert one.facts == {"rows": ROWS, "first": 0.0}
    assert one.tensor("column").tolist() == [float(row) for row in range(ROWS)]
    assert one.tensor("pairs").tolist() == [[row, -row] for row in range(ROWS)]


def test_a_set_is_written_once_and_mapped(prepare: Preparing) -> None:
    first, second = prepare(), prepare()
    check(first)
    check(second)
    assert prepare.times == 1
    assert first.folder == second.folder
    assert first.sha256 == {"train": sha256_of(prepare.source)}
    assert sorted(p.name for p in prepare.cache.iterdir()) == ["known", first.folder.name]


def test_numpy_reads_the_arrays(prepare: Preparing) -> None:
    numpy = pytest.importorskip("numpy", reason="NumPy is the other reader of the format")
    folder = prepare().folder
    assert numpy.load(folder / "column.npy").tolist() == [float(row) for row in range(ROWS)]
    assert numpy.load(folder / "pairs.npy")[7].tolist() == [7, -7]


def test_other_keys_and_other_content_are_other_sets(prepare: Preparing) -> None:
    folders = {prepare(seed=1).folder, prepare(seed=2).folder}
    prepare.source.write_text("5\n")
    folders.add(prepare(seed=1).folder)
    assert len(folders) == 3


def test_what_is_mapped_is_listed_as_long_as_it_is_used(prepare: Preparing) -> None:
    tensor = prepare().tensor("column")
    [one] = [m for m in mapped.mappings() if m.path.parent.parent == prepare.cache]
    assert one.identity == identity.FileIdentity.of(one.path)
    assert one.length == one.path.stat().st_size
    assert one.address % os.sysconf("SC_PAGE_SIZE") == 0
    del tensor, one
    assert not [m for m in mapped.mappings() if m.path.parent.parent == prepare.cache]


def test_a_mapped_array_is_read_only(prepare: Preparing) -> None:
    with pytest.raises(Exception, match="read-only"):
        prepare().tensor("column").add_(1)


def test_no_bit_of_the_facts_can_be_flipped(prepare: Preparing) -> None:
    folder = prepare().folder
    path, facts = folder / "facts.json", read_facts(folder)
    content = path.read_bytes()
    path.chmod(0o644)
    for at in range(len(content)):
        for bit in (1, 2, 16, 32, 128):
            path.write_bytes(content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :])
            try:
                assert read_facts(folder) == facts, at  # white space, or an escape of the same
            except Damage:
                continue


@pytest.mark.parametrize(
    ("key", "value"),
    [("dtype", "int7"), ("shape", [-1]), ("shape", [10**30]), ("offset", 0), ("identity", [1])],
)
def test_facts_that_somebody_made_up_are_not_believed(
    prepare: Preparing, told: list[str], key: str, value: Any
) -> None:
    path = prepare().folder / "facts.json"
    facts = json.loads(path.read_text())
    del facts["sha256"]
    facts["arrays"]["column"][key] = value
    path.chmod(0o644)
    path.write_text(json.dumps({**facts, "sha256": _hash(facts)}))
    if value == [10**30]:
        with pytest.raises(DataError, match="expected at least"):
            prepare().tensor("column")
        return
    check(prepare())
    assert "facts.json lacks what this version needs" in told[0]


def test_a_set_that_is_mapped_may_be_removed_and_made_again(prepare: Preparing) -> None:
    tensor = prepare().tensor("column")
    shutil.rmtree(prepare().folder)
    mapped.check_mappings(closely=True)
    check(prepare())
    mapped.check_mappings(closely=True)
    assert tensor.tolist() == [float(row) for row in range(ROWS)]


def test_a_mapped_array_that_is_overwritten_is_noticed_even_once_it_was_replaced(
    prepare: Preparing,
) -> None:
    one = prepare()
    tensor = one.tensor("column")
    path = one.folder / "column.npy"
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.seek(200)
        file.write(b"\1\2\3")
    check(prepare())
    assert prepare.times == 2
    with pytest.raises(DataError, match="it was written to"):
        mapped.check_mappings(closely=True)
    del tensor


@pytest.mark.parametrize("name", ["facts.json", "column.npy", "pairs.npy"])
def test_a_flipped_byte_is_noticed_and_the_set_prepared_anew(
    prepare: Preparing, told: list[str], name: str
) -> None:
    path = prepare().folder / name
    for at in range(0, path.stat().st_size, 97 if name == "facts.json" else 2011):
        content = bytearray(path.read_bytes())
        content[at] ^= 1
        path.chmod(0o644)
        path.write_bytes(content)
        before, told[:] = prepare.times, []
        check(prepare())
        assert prepare.times == before + 1
        assert name in told[0]


def test_a_byte_flipped_behind_the_files_time_is_found_by_verifying(
    prepare: Preparing, verifying: None
) -> None:
    path = prepare().folder / "column.npy"
    found = path.stat()
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    check(prepare())
    assert prepare.times == 2


def test_a_touched_array_is_hashed_and_believed(prepare: Preparing) -> None:
    path = prepare().folder / "column.npy"
    os.utime(path, (1e9, 1e9))
    check(prepare())
    assert prepare.times == 1


def test_a_source_that_is_edited_while_it_is_prepared_is_refused(prepare: Preparing) -> None:
    write = prepare.write

    def edited(writer: Writer) -> Mapping[str, Any]:
        facts = write(writer)
        prepare.source.write_text(prepare.source.read_text() + "7\n")
        return facts

    prepare.write = edited  # type: ignore[method-assign]
    with pytest.raises(DataError, match=r"numbers\.csv' was edited while it was being prepared"):
        prepare()
    assert [p.name for p in prepare.cache.iterdir()] == ["known"]


def test_nothing_is_left_of_a_set_that_could_not_be_written(
    prepare: Preparing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match=r"the disk is full: prepared data needs about .* free") as e:
        prepare()
    assert e.value.exit_code == 7
    assert [p.name for p in prepare.cache.iterdir()] == ["known"]
    monkeypatch.undo()
    check(prepare())


def test_what_a_killed_process_left_is_removed(prepare: Preparing) -> None:
    name = prepare().folder.name
    left = prepare.cache / f".{name}.123-00"
    left.mkdir()
    (left / "column.npy").write_bytes(b"half")
    (prepare.cache / name / "facts.json").unlink()
    check(prepare())
    assert not left.exists()


def test_a_disk_without_locks_keeps_what_was_first(
    prepare: Preparing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unknown)
    other = Preparing(prepare.source, prepare.cache)
    write = prepare.write

    def overtaken(writer: Writer) -> Mapping[str, Any]:
        facts = write(writer)
        other()
        return facts

    prepare.write = overtaken  # type: ignore[method-assign]
    check(prepare())
    check(prepare())
    assert (prepare.times, other.times) == (1, 1)
    assert len([path for path in prepare.cache.iterdir() if path.name != "known"]) == 1


def test_a_file_is_hashed_again_only_where_it_changed(source: Path, tmp_path: Path) -> None:
    read: list[int] = []
    cache = tmp_path / "cache"
    first = sha256_of(source, read.append, cache)
    assert sum(read) == source.stat().st_size
    assert sha256_of(source, read.append, cache) == first
    assert sum(read) == source.stat().st_size
    source.write_text(source.read_text().replace("7", "8"))
    assert sha256_of(source, read.append, cache) != first


def test_a_note_that_was_changed_is_no_note(source: Path, tmp_path: Path) -> None:
    expected = sha256_of(source, cache=tmp_path / "cache")
    [note] = (tmp_path / "cache" / "known").iterdir()
    content = note.read_bytes()
    for at in range(len(content)):
        note.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert sha256_of(source, cache=tmp_path / "cache") == expected


@pytest.mark.parametrize("age", [0, 1e9])
def test_a_file_that_was_just_written_is_not_remembered_whatever_its_time(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age: float
) -> None:
    monkeypatch.undo()
    os.utime(source, (time.time() - age, time.time() - age))
    read: list[int] = []
    for _ in range(2):
        sha256_of(source, read.append, tmp_path / "cache")
    assert sum(read) == 2 * source.stat().st_size


def test_an_edit_within_the_tick_of_a_clock_is_found_by_the_hash(
    prepare: Preparing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    then = identity.FileIdentity.of(prepare.source)
    monkeypatch.setattr(identity.FileIdentity, "of_status", lambda status: then)
    write = prepare.write

    def edited(writer: Writer) -> Mapping[str, Any]:
        prepare.source.write_text(prepare.source.read_text().replace("7", "8"))
        return write(writer)

    prepare.write = edited  # type: ignore[method-assign]
    with pytest.raises(DataError, match="was edited while it was being prepared"):
        prepare()


def test_a_set_that_somebody_removes_at_once_is_told_in_a_sentence(
    prepare: Preparing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sets, "_put_in_place", lambda aside, folder: None)
    with pytest.raises(RunError, match="was removed or changed by somebody") as caught:
        prepare()
    assert caught.value.code == "E708"
