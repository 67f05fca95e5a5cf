"""Hashes that come later hold nothing up, and nothing is saved of data that proved wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny import Silent, go_on, only_run, status, tiny_job, train

from gradcli.data import hashes
from gradcli.data.hashes import Hashes, merged, so_far
from gradcli.data.prepared import mapped
from gradcli.errors import CheckpointError, DataError
from gradcli.train.directory import find_checkpoint
from gradcli.train.loop import Trainer


class Coming:
    """A hash that is there when it is waited for, or a fault that is seen at some look."""

    def __init__(self, fault: DataError | None = None) -> None:
        self.ready = False
        self.fault: DataError | None = None
        self.waits: list[int] = []
        self._fault = fault

    def result(self) -> str:
        self.waits.append(1)
        self.ready = True
        self.fault = self._fault
        if self.fault is not None:
            raise self.fault
        return "00"


def job_with(later: Any, **changes: Any) -> Any:
    job = tiny_job(**changes)
    job.dataset.sha256 = Hashes({"points": later, "labels": "11"})
    return job


def data_of(run: Path, what: str) -> Any:
    return find_checkpoint(run, what)[1].meta.data


def manifest(run: Path) -> Any:
    return json.loads((run / "manifest.json").read_text())


def test_reading_a_hash_waits_and_asking_what_is_known_does_not() -> None:
    later = Coming()
    both = merged(Hashes({"points": later}), {"code/own.py": "22"})
    assert so_far(both) == {"points": None, "code/own.py": "22"}
    assert not later.waits
    assert dict(both) == {"points": "00", "code/own.py": "22"}
    assert so_far(both) == {"points": "00", "code/own.py": "22"}
    assert merged({"a": "1"}, {"b": "2"}) == so_far({"a": "1", "b": "2"})


def test_the_first_checkpoint_does_not_wait_and_the_next_one_has_the_hash(tmp_path: Path) -> None:
    later = Coming()
    seen: list[bool] = []
    job = job_with(later, settings={"keep": 9})
    job.dataset.splits["train"].on_batch = lambda _: seen.append(later.ready)
    run = Path(train(tmp_path, job).run)
    assert seen[0] is False  # the step came first
    assert data_of(run, "0") == {"points": None, "labels": "11"}
    assert data_of(run, "last") == {"points": "00", "labels": "11"}
    assert manifest(run)["data"] == {"points": "00", "labels": "11"}


def test_a_run_goes_on_from_a_first_checkpoint_without_the_hash(tmp_path: Path) -> None:
    run = Path(train(tmp_path, job_with(Coming()), max_steps=0).run)
    for name in ("last", "best"):
        (run / name).unlink(missing_ok=True)
    for path in (run / "checkpoints").glob("step-*"):
        if path.name != "step-00000000.safetensors":
            path.unlink()
    assert go_on(run, job_with(Coming())).steps == 18
    job = job_with(Coming())
    job.dataset.sha256 = Hashes({"points": Coming(), "labels": "33"})
    with pytest.raises(CheckpointError, match="labels: sha256 was 11, is 33"):
        go_on(run, job)


def test_data_that_proves_wrong_ends_the_run_before_the_next_checkpoint(tmp_path: Path) -> None:
    fault = DataError("x.npy: sample 3 holds nan, expected numbers of float32", code="E305")
    with pytest.raises(DataError, match="sample 3 holds nan"):
        train(tmp_path, job_with(Coming(fault)))
    run = only_run(tmp_path)
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["step-00000000.safetensors"]
    assert status(run).status == "failed"
    assert not hasattr(status(run), "weights_sha256")


def test_a_fault_that_is_known_ends_the_run_at_the_next_step(tmp_path: Path) -> None:
    later = Coming()
    job = job_with(later)

    def spoil(_: object) -> None:
        later.fault = DataError("x.npy: sample 3 holds nan")

    job.dataset.splits["train"].on_batch = spoil
    with pytest.raises(DataError, match="sample 3"):
        train(tmp_path, job)
    assert status(only_run(tmp_path)).step == 0


def test_hashes_are_there_before_the_last_figures_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = DataError("x.npy: sample 3 holds nan, expected numbers of float32")
    evaluated: list[int] = []

    class Listening(Silent):
        def on_evaluation(self, step: int, metrics: Any) -> None:
            evaluated.append(step)

    job = job_with(Coming(fault), settings={"epochs": 1, "checkpoint_every": 1000})
    monkeypatch.setattr(Trainer, "_save_due", lambda self, ended: self._saved < 0)
    with pytest.raises(DataError, match="sample 3"):
        train(tmp_path, job, reporter=Listening())
    log = (only_run(tmp_path) / "log.jsonl").read_text()
    assert '"test"' not in log and not (only_run(tmp_path) / "evaluation.json").exists()
    assert evaluated == [6]  # of val, as the epoch ended


def test_files_are_looked_at_before_anything_is_entered_and_closely_before_it_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[bool] = []

    def look(closely: bool) -> None:
        looks.append(closely)
        if closely and list(tmp_path.glob("*/*/checkpoints/step-00000006.safetensors")):
            raise DataError("x.npy is another file than when the run began")

    assert mapped.check_mappings in hashes.lookouts  # imported later it would be lost with `look`
    monkeypatch.setattr(hashes, "lookouts", [look])
    with pytest.raises(DataError, match="another file"):
        train(tmp_path, tiny_job())
    run = only_run(tmp_path)
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == [
        "step-00000000.safetensors",
        "step-00000006.safetensors",
    ]
