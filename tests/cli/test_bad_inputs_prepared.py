"""What can happen to prepared data, and that no wrong number comes of it."""

from __future__ import annotations

import errno
import io
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measured_data
import pytest
from measured_data import Measured, write_rows
from points import Ended
from test_data_command import gradcli, measured, sets

import gradcli as package
from gradcli.data.prepared.identity import FileIdentity

__all__ = ["gradcli", "measured"]
Command = Callable[..., Ended]
KILLS = int(os.environ.get("GRADCLI_KILLS", "3"))


def begin(*arguments: str) -> subprocess.Popen[str]:
    """A process of its own that prepares rows.txt into ./cache."""
    return subprocess.Popen(
        [sys.executable, measured_data.__file__, *(arguments or ("prepare", "rows.txt", "cache"))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1])},
    )


def weights(command: Command) -> str:
    ended = command("train", "measured.yaml", "--json")
    assert ended.code == 0, ended.err
    return str(ended.json["weights_sha256"])


def test_a_process_that_is_killed_leaves_nothing_that_is_believed(measured: Command) -> None:
    write_rows(Path("rows.txt"), 60_000)
    whole = begin()
    expected, _ = whole.communicate(timeout=120)
    for number in range(KILLS):
        measured("data", "clean", "--yes", "--cache", "cache")
        killed = begin()
        assert killed.stdout is not None
        assert killed.stdout.readline() == "begun\n"
        time.sleep(random.Random(number).uniform(0, 0.3))
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=120)
        out, err = begin().communicate(timeout=120)
        assert out.splitlines()[-1] == expected.splitlines()[-1], err
        assert sorted(path.name for path in Path("cache").iterdir() if path.name != "known") == [
            sets()[0].name
        ]


def test_of_two_processes_one_prepares_and_the_other_one_waits(measured: Command) -> None:
    write_rows(Path("rows.txt"), 60_000)
    ends = [process.communicate(timeout=120) for process in [begin(), begin(), begin()]]
    assert sorted(out.count("begun") for out, _ in ends) == [0, 0, 1]
    assert len({out.splitlines()[-1] for out, _ in ends}) == 1
    assert len(sets()) == 1


def test_whoever_waits_says_so(measured: Command) -> None:
    from gradcli.data.prepared.lock import PreparationLock

    measured("data", "prepare", "measured.yaml")
    [one] = sets()
    lock = PreparationLock(one.with_name(f"{one.name}.lock"), None)
    measured("data", "clean", "--yes", "--cache", "cache")
    os.truncate(_writable(one / "targets.npy"), 100)
    process = begin("data", "prepare", "measured.yaml")
    assert process.stderr is not None
    assert process.stderr.readline() == "another process prepares rows.txt; waiting for it\n"
    lock.release()
    assert process.wait(timeout=120) == 0
    process.communicate()


def _writable(path: Path) -> Path:
    path.chmod(0o644)
    return path


@pytest.mark.parametrize("call", ["write", "fsync", "mkdir"])
def test_a_full_disk_says_what_was_needed(
    measured: Command, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    _fail(monkeypatch, call, errno.ENOSPC)
    ended = measured("train", "measured.yaml")
    assert ended.code == 7
    assert "error[E708] the disk is full: prepared data needs " in ended.err
    assert "data: {cache: DIR}" in ended.err
    assert not list(Path("cache").glob("[.m]*"))
    assert not Path("runs").exists()


class Full(io.FileIO):
    """A file on a disk without room."""

    def write(self, data: object) -> int:
        del data
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _fail(monkeypatch: pytest.MonkeyPatch, call: str, number: int) -> None:
    """The disk refuses a call."""
    real = Path.open

    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    def open_full(path: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if mode != "xb":
            return real(path, mode, *arguments, **options)
        return Full(path, "x")

    if call == "write":
        monkeypatch.setattr(Path, "open", open_full)
    else:
        monkeypatch.setattr(Path if call == "mkdir" else os, call, refuse)


def test_a_cache_that_cannot_be_written_has_a_cure(
    measured: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured("data", "prepare", "measured.yaml")
    expected = weights(measured)
    with monkeypatch.context() as patch:
        _fail(patch, "mkdir", errno.EROFS)
        patch.setattr(os, "utime", os.mkdir)  # fails as well
        assert measured("data", "prepare", "measured.yaml").code == 0
        write_rows(Path("rows.txt"), 100)
        ended = measured("train", "measured.yaml")
    assert ended.code == 7
    assert "cannot be written to " in ended.err
    assert "Read-only file system" in ended.err
    assert "data: {cache: DIR}" in ended.err
    write_rows(Path("rows.txt"))
    assert weights(measured) == expected


@pytest.mark.parametrize("name", ["facts.json", "inputs.npy", "targets.npy"])
def test_a_flipped_byte_gives_no_wrong_number(measured: Command, name: str) -> None:
    expected = weights(measured)
    path = sets()[0] / name
    for at in range(0, path.stat().st_size, path.stat().st_size // 5):
        content = bytearray(path.read_bytes())
        content[at] ^= 4
        _writable(path).write_bytes(content)
        ended = measured("train", "measured.yaml")
        assert ended.code == 0
        assert f"prepared data {sets()[0].name} is made anew: " in ended.err
        assert f"weights sha256 {expected}" in ended.out


def test_a_byte_that_rotted_on_the_disk_is_found_where_that_is_asked_for(
    measured: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = weights(measured)
    path = _writable(sets()[0] / "inputs.npy")
    content = bytearray(path.read_bytes())
    content[-2] ^= 4
    path.write_bytes(content)
    monkeypatch.setattr(FileIdentity, "untouched", lambda one, other: True)  # as the disk says
    assert measured("data", "verify", "--cache", "cache").code == 3
    assert f"weights sha256 {expected}" not in measured("train", "measured.yaml").out
    ended = measured("train", "measured.yaml", "--verify-data")
    assert ended.code == 0
    assert "is made anew: inputs.npy was changed" in ended.err
    assert f"weights sha256 {expected}" in ended.out


def test_a_source_that_is_edited_between_runs_is_prepared_again(measured: Command) -> None:
    first = weights(measured)
    write_rows(Path("rows.txt"), 408)
    assert weights(measured) != first
    ended = measured("resume", "last")
    write_rows(Path("rows.txt"))
    assert weights(measured) == first
    assert ended.code == 0
    assert len(sets()) == 2


def test_a_source_that_is_edited_while_it_is_prepared_is_refused(
    measured: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Measured.write

    def edited(source: Measured, writer: Any) -> Any:
        facts = write(source, writer)
        write_rows(Path(source.file), 399)
        return facts

    monkeypatch.setattr(Measured, "write", edited)
    ended = measured("train", "measured.yaml")
    assert ended.code == 3
    assert "rows.txt' was edited while it was being prepared; start again" in ended.err
    assert not Path("runs").exists()
    assert sets() == []


def test_a_cache_that_is_a_file_or_nowhere(measured: Command, monkeypatch) -> None:
    Path("cache").write_text("")
    for command in (("train", "measured.yaml"), ("data", "list", "--cache", "cache")):
        ended = measured(*command)
        assert ended.code == 7
        assert "cache" in ended.err
    assert "cache: that is a file, or lies below one" in measured("train", "measured.yaml").err
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(Path, "home", _homeless)
    ended = measured("data", "list")
    assert ended.code == 7
    assert "there is no home folder for the cache of prepared data" in ended.err


def _homeless() -> Path:
    raise RuntimeError("Could not determine home directory.")
