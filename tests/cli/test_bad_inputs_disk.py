"""Rows 57 and 81: a disk that does not remove or flush, or is too small for what is to come."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from points import Ended, gradcli, only_run
from refusals import needs_proc

__all__ = ["gradcli"]

Command = Callable[..., Ended]
EVERY_STEP = ("-s", "train.checkpoint_every=1", "-s", "train.best=null")
REASONS = [errno.EIO, errno.EACCES, errno.EPERM, errno.EROFS]


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Files that begin with a key cannot be removed, with that errno."""
    usual, refusals = Path.unlink, dict[str, int]()

    def unlink(path: Path, missing_ok: bool = False) -> None:
        for beginning, number in refusals.items():
            if path.name.startswith(beginning):
                raise OSError(number, os.strerror(number))
        usual(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    return refusals


def saved(run: Path) -> list[int]:
    return sorted(int(path.stem[5:]) for path in (run / "checkpoints").glob("step-*"))


@pytest.mark.parametrize("reason", REASONS)
def test_old_checkpoints_that_cannot_be_removed_end_no_run(
    gradcli: Command, stuck: dict[str, int], reason: int
) -> None:
    stuck["step-"] = reason
    ended = gradcli("train", "dots.yaml", "--max-steps", "9", *EVERY_STEP)
    assert ended.code == 0
    notes = [line for line in ended.err.splitlines() if "cannot be removed" in line]
    assert notes == [
        "warning: an old checkpoint cannot be removed: step-00000000.safetensors: "
        f"{os.strerror(reason)}; the training goes on, and each save tries it again"
    ]
    assert saved(only_run()) == list(range(10))
    stuck.clear()
    assert gradcli("resume", "last").code == 0
    assert saved(only_run()) == [17, 18]


def test_a_temporary_file_that_cannot_be_removed_ends_no_run(
    gradcli: Command, stuck: dict[str, int]
) -> None:
    gradcli("train", "dots.yaml", "--max-steps", "9")
    names = [".gradcli-0123456789abcdef.tmp", ".gradcli-1123456789abcdef.tmp"]
    for folder, name in zip((only_run(), only_run() / "checkpoints"), names, strict=True):
        (folder / name).touch()
    stuck[names[0]] = errno.EPERM
    ended = gradcli("resume", "last")
    assert ended.code == 0
    assert f"warning: cannot remove {names[0]} of a killed run: Operation not" in ended.err
    assert f"removed {names[1]}, left by a killed run" in ended.err


def test_a_save_that_fails_is_told_though_its_file_cannot_be_removed(
    gradcli: Command, stuck: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", refuse)
    stuck[".gradcli-"] = errno.EIO
    ended = gradcli("train", "dots.yaml")
    assert (ended.code, "No space left on device" in ended.err) == (7, True)


@needs_proc
@pytest.mark.parametrize("folder", ["dots", "run"])
@pytest.mark.parametrize("runs_there", [False, True])
def test_a_folder_that_cannot_be_flushed_at_the_start_leaves_no_empty_run(
    gradcli: Command, monkeypatch: pytest.MonkeyPatch, folder: str, runs_there: bool
) -> None:
    usual = os.fsync
    if runs_there:
        Path("runs").mkdir()

    def refuse(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        if path.is_dir() and (path.name == folder or (folder == "run" and path.name[0] == "2")):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        usual(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    ended = gradcli("train", "dots.yaml")
    assert (ended.code, "Input/output error" in ended.err) == (7, True)
    assert list(Path().glob("runs/*/*")) == []
    assert Path("runs").exists() == (runs_there or folder == "run")


def test_checkpoints_that_will_not_fit_are_told_before_the_first_step(
    gradcli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    gradcli("train", "dots.yaml", "--max-steps", "9")
    usual = os.statvfs

    def small(folder: Path) -> os.statvfs_result:
        values = list(usual(folder))
        values[1:5] = 512, 1 << 30, 3, 3  # a block's bytes, all of them, free ones
        return os.statvfs_result(values)

    monkeypatch.setattr(os, "statvfs", small)
    for command in (("train", "dots.yaml", "-s", "train.keep=4"), ("resume", "last")):
        ended = gradcli(*command)
        assert ended.code == 7
        assert "error[E703]" in ended.err
        assert "would not fit on the disk of" in ended.err
        assert "1.5 kB free" in ended.err
        assert "make room for" in ended.err
        assert "loss" not in ended.err
    run = only_run()  # nothing half-made is beside it
    assert saved(run)[-1] == 9
    monkeypatch.undo()
