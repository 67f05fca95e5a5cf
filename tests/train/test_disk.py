"""The room on the disk that a run's checkpoints need, known before its first step."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny import Silent, tiny_job, train

from gradcli.errors import RunError
from gradcli.train import checkpoint, disk
from gradcli.train.job import TrainSettings
from gradcli.train.state import all_tensors

BLOCK = 512


def free(monkeypatch: pytest.MonkeyPatch, count: int, blocks: int = 1 << 40) -> None:
    """A file system that says so."""
    space = SimpleNamespace(f_blocks=blocks, f_frsize=BLOCK, f_bfree=count, f_bavail=count)
    monkeypatch.setattr(os, "statvfs", lambda folder: space)


@pytest.mark.parametrize(
    ("changes", "evaluates", "end", "files"),
    [
        ({}, False, 100, 3),  # two stay, and one is being written
        ({}, False, 10, 2),  # at the first step and the last one
        ({}, False, 20, 3),
        ({}, False, 0, 1),
        ({"keep": 1}, False, 100, 3),
        ({"keep": 5}, False, 100, 6),
        ({"keep": 50}, False, 100, 11),
        ({"keep": 50, "checkpoint_every": 7}, False, 100, 16),
        ({"keep": 50, "checkpoint_minutes": 1.0}, False, 100, 51),
        ({"best": "val.loss"}, True, 100, 4),
        ({"best": "val.loss"}, False, 100, 3),
        ({"best": "val.loss", "keep": 99, "eval_every": 5}, True, 20, 5),
    ],
)
def test_how_many_checkpoints_lie_there_at_a_time(
    changes: dict[str, Any], evaluates: bool, end: int, files: int
) -> None:
    settings = TrainSettings(batch=8, **changes)
    assert disk.files_at_once(settings, evaluates, 0, end, per_epoch=10) == files


def test_a_resumed_run_saves_the_rest_alone() -> None:
    settings = TrainSettings(batch=8, keep=50)
    assert disk.files_at_once(settings, False, 41, 60, per_epoch=10) == 2
    assert disk.files_at_once(settings, False, 61, 60, per_epoch=10) == 0


def test_the_size_of_a_checkpoint_is_known_before_it_is_written(tmp_path: Path) -> None:
    result = train(tmp_path)
    path = Path(result.run) / "checkpoints" / "step-00000018.safetensors"
    meta = checkpoint.read(path).meta
    job = tiny_job()
    tensors = disk.outlines(all_tensors(job.model, job.optimizer))
    assert checkpoint.size_of(meta, tensors) == path.stat().st_size


def test_checkpoints_that_do_not_fit_end_the_run_before_its_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []

    class Watching(Silent):
        def on_step(self, step: int, loss: float, rate: float) -> None:
            steps.append(step)

    free(monkeypatch, 3)
    with pytest.raises(RunError, match=r"3 checkpoints of [\d.]+ kB each would not fit") as caught:
        train(tmp_path, reporter=Watching())
    assert (caught.value.code, caught.value.exit_code) == ("E703", 7)
    assert "1.5 kB free" in caught.value.message
    assert "make room for" in caught.value.notes[0]
    assert steps == []
    assert list((tmp_path / "tiny").iterdir()) == []


@pytest.mark.parametrize(("blocks", "count"), [(0, 0), (1 << 40, 1 << 30)])
def test_a_disk_that_has_room_or_does_not_say_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int, count: int
) -> None:
    free(monkeypatch, count, blocks)
    assert train(tmp_path).status == "finished"


def test_checkpoints_that_lie_there_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in (1, 2):
        (tmp_path / checkpoint.file_name(step)).touch()
    free(monkeypatch, 2)
    disk.check_room(tmp_path, BLOCK, files=3, keep=2)
    disk.check_room(tmp_path, BLOCK, files=4, keep=2)
    with pytest.raises(RunError, match="3 checkpoints of 512 bytes each would not fit") as caught:
        disk.check_room(tmp_path, BLOCK, files=5, keep=3)
    assert caught.value.notes[-1] == "or set train.keep lower"
    free(monkeypatch, 0)
    disk.check_room(tmp_path, BLOCK, files=0, keep=2)
    with pytest.raises(RunError, match="1 checkpoint of 512 bytes each would not fit"):
        disk.check_room(tmp_path, BLOCK, files=2, keep=2)


def test_free_bytes_are_those_of_this_user(tmp_path: Path) -> None:
    space = os.statvfs(tmp_path)
    blocks = space.f_bfree if os.geteuid() == 0 else space.f_bavail
    disk.check_room(tmp_path, 1, files=1, keep=2)
    with pytest.raises(RunError):
        disk.check_room(tmp_path, (blocks + 1_000_000) * space.f_frsize, files=1, keep=2)
