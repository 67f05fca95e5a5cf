"""A log.jsonl that something spoiled: what is good in it goes on, and nothing of it is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from points import Ended, gradcli, only_run

__all__ = ["gradcli"]

Command = Callable[..., Ended]


@pytest.fixture
def stopped(gradcli: Command) -> Path:
    """A run stopped after 12 of 18 steps."""
    assert gradcli("train", "dots.yaml", "--max-steps", "12").code == 0
    return only_run()


def steps_of(run: Path) -> list[int]:
    lines = (run / "log.jsonl").read_text().splitlines()
    records = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    return [one["step"] for one in records if one["event"] == "step"]


@pytest.mark.parametrize("damage", [b"garbage", b"\0" * 64, b"\xff\xfe", b'{"event": "step"}'])
def test_a_broken_line_costs_no_other(gradcli: Command, stopped: Path, damage: bytes) -> None:
    lines = (stopped / "log.jsonl").read_bytes().split(b"\n")
    lines[2] = damage
    broken = b"\n".join(lines)
    (stopped / "log.jsonl").write_bytes(broken)
    ended = gradcli("resume", "last")
    assert ended.code == 0
    assert "line 3 is no record of this run; the whole file is log.jsonl.damaged-1" in ended.err
    assert (stopped / "log.jsonl.damaged-1").read_bytes() == broken
    assert steps_of(stopped) == [1, 2, *range(4, 19)]


@pytest.mark.parametrize("kind", ["a directory", "a symbolic link"])
def test_a_log_that_is_no_file_is_moved_aside(
    gradcli: Command, stopped: Path, kind: str, tmp_path: Path
) -> None:
    log = stopped / "log.jsonl"
    before = log.rename(tmp_path / "elsewhere").read_bytes()
    log.mkdir() if kind == "a directory" else log.symlink_to(tmp_path / "elsewhere")
    ended = gradcli("resume", "last")
    assert ended.code == 0
    assert f"log.jsonl is {kind}; it is log.jsonl.damaged-1 now" in ended.err
    assert steps_of(stopped) == list(range(13, 19))
    assert (tmp_path / "elsewhere").read_bytes() == before


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is flushed and what gets its name, in order: `sync log.jsonl`, `name last`."""
    events: list[str] = []
    sync, replace = os.fsync, Path.replace

    def fsync(handle: int) -> None:
        sync(handle)
        events.append(f"sync {Path(f'/proc/self/fd/{handle}').readlink().name}")

    def name(path: Path, target: Path) -> Path:
        events.append(f"name {Path(target).name}")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", name)
    return events


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's /proc")
def test_the_log_is_on_the_disk_before_each_checkpoint_and_before_the_end(
    gradcli: Command, disk: list[str]
) -> None:
    gradcli("train", "dots.yaml", "--max-steps", "7")
    _check(disk, checkpoints=2)
    with (only_run() / "log.jsonl").open("a") as file:
        file.write('{"event": "st')
    disk.clear()
    gradcli("resume", "last")
    assert disk[0] == "sync log.jsonl"  # cut
    _check(disk, checkpoints=2)


def _check(disk: list[str], checkpoints: int) -> None:
    """Each checkpoint, and the last status, comes after a flush of the log since the one before."""
    last = len(disk) - 1 - disk[::-1].index("name status.json")
    ends = [i for i, one in enumerate(disk) if one.startswith("name step-")]
    if "name step-00000000.safetensors" in disk:
        del ends[0]  # nothing is logged before it
    assert len(ends) == checkpoints
    for before, end in zip([0, *ends], [*ends, last], strict=True):
        assert "sync log.jsonl" in disk[before:end]


def test_a_log_that_cannot_be_flushed_makes_no_checkpoint(
    gradcli: Command, stopped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inode = (stopped / "log.jsonl").stat().st_ino
    sync, calls = os.fsync, [inode]

    def refuse(handle: int) -> None:
        calls.append(os.fstat(handle).st_ino)
        if calls.count(inode) > 2:  # the first is of the log that is cut
            raise OSError(5, "Input/output error")
        sync(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    before = sorted((stopped / "checkpoints").iterdir())
    ended = gradcli("resume", "last")
    assert (ended.code, "log.jsonl: Input/output error" in ended.err) == (7, True), ended.err
    assert sorted((stopped / "checkpoints").iterdir()) == before
