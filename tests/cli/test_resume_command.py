"""`gradcli resume`: exactly on, or a sentence that says why not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from points import VERSION, gradcli, only_run

from gradcli.train.directory import RunDirectory

__all__ = ["gradcli"]


@pytest.fixture
def stopped(gradcli) -> Path:
    """A run stopped after 4 of 18 steps."""
    assert gradcli("train", "dots.yaml", "--max-steps", "4").code == 0
    return only_run()


def test_resumed_equals_uninterrupted(gradcli, stopped: Path) -> None:
    resumed = gradcli("resume", "last", "--json")
    whole = gradcli("train", "dots.yaml", "--json", "--name", "whole")
    assert resumed.json["weights_sha256"] == whole.json["weights_sha256"]
    assert resumed.json["metrics"] == whole.json["metrics"]
    assert resumed.json["run"] == str(stopped)


def test_the_config_of_a_run_that_goes_on_is_the_same_text(gradcli, stopped: Path) -> None:
    before = (stopped / "resolved.yaml").read_bytes()
    gradcli("resume", "last")
    assert (stopped / "resolved.yaml").read_bytes() == before


@pytest.mark.parametrize("how", ["path", "name", "last", "dots@last", "dots@4"])
def test_a_run_is_named_in_three_ways(gradcli, stopped: Path, how: str) -> None:
    name = {"path": str(stopped), "name": "dots"}.get(how, how)
    assert gradcli("resume", name, "--json").json["steps"] == 18


def test_a_finished_run_is_done(gradcli, stopped: Path) -> None:
    first = gradcli("resume", "last", "--json").json
    ended = gradcli("resume", "last", "--json")
    assert "is finished: nothing to do" in ended.err
    assert ended.json == first


def test_a_finished_run_can_be_made_longer(gradcli, stopped: Path) -> None:
    gradcli("resume", "last")
    ended = gradcli("resume", "last", "--json", "-s", "train.epochs=4")
    assert ended.json["steps"] == 24
    assert "epochs: 4" in (stopped / "resolved.yaml").read_text()


def test_a_finished_run_whose_last_checkpoint_is_damaged_makes_it_again(
    gradcli, stopped: Path
) -> None:
    first = gradcli("resume", "last", "--json").json
    (stopped / "checkpoints" / "step-00000018.safetensors").write_bytes(b"1234567")
    assert "skipped step-00000018.safetensors" in gradcli("resume", "last").err
    assert gradcli("eval", "last", "--json").json["weights_sha256"] == first["weights_sha256"]


def test_a_finished_run_without_checkpoints_is_not_done(gradcli, stopped: Path) -> None:
    gradcli("resume", "last")
    for path in (stopped / "checkpoints").iterdir():
        path.unlink()
    assert gradcli("resume", "last").code == 7


def test_a_run_cannot_end_before_the_step_that_it_is_at(gradcli, stopped: Path) -> None:
    gradcli("resume", "last")
    before = (stopped / "resolved.yaml").read_bytes()
    ended = gradcli("resume", "last", "-s", "train.epochs=2")
    assert ended.code == 2
    assert "would end at step 12, and the run is at step 18" in ended.err
    assert (stopped / "resolved.yaml").read_bytes() == before


def test_a_run_that_early_stopping_ended_is_done(gradcli) -> None:
    stop = "train.early_stop={metric: val.loss, patience: 1, min_delta: 100}"
    first = gradcli("train", "dots.yaml", "--json", "-s", stop).json
    assert first["steps"] < 18
    assert "nothing to do" in gradcli("resume", "last").err


def test_a_folder_is_told_what_it_lacks_to_be_a_run(gradcli, tmp_path: Path) -> None:
    folder = tmp_path / "some"
    folder.mkdir()
    assert "it has no resolved.yaml" in gradcli("resume", str(folder)).err
    (folder / "resolved.yaml").touch()
    assert "resolved.yaml is empty" in gradcli("resume", str(folder)).err


@pytest.mark.parametrize(
    "override", ["optim.name=sgd", "train.batch=4", "=", "train", "train.seed=2", "optim"]
)
def test_other_overrides_are_a_new_run(gradcli, stopped: Path, override: str) -> None:
    ended = gradcli("resume", "last", "-s", override)
    assert ended.code == 2
    assert "that is a new run" in ended.err


@pytest.mark.parametrize("name", ["nothing", "../x", "dost", "", "a\x1b[2J"])
def test_an_unknown_run_is_exit_7(gradcli, stopped: Path, name: str) -> None:
    ended = gradcli("resume", name)
    assert ended.code == 7
    assert "no run" in ended.err or "not a run" in ended.err
    assert "\x1b" not in ended.err


def test_changed_data_is_refused_unless_allowed(gradcli, stopped: Path, monkeypatch) -> None:
    monkeypatch.setitem(VERSION, "sha256", "11")
    ended = gradcli("resume", "last")
    assert ended.code == 7
    assert "points: sha256 was 00, is 11" in ended.err
    assert gradcli("resume", "last", "--allow-data-change").code == 0


def test_a_changed_config_is_refused(gradcli, stopped: Path) -> None:
    path = stopped / "resolved.yaml"
    path.write_text(path.read_text().replace("lr: 0.05", "lr: 0.06"))
    ended = gradcli("resume", "last")
    assert ended.code == 7
    assert "optim.lr: the checkpoint has 0.05, the config 0.06" in ended.err


def test_a_run_in_use_is_refused_with_the_holder(gradcli, stopped: Path) -> None:
    with RunDirectory(stopped):
        ended = gradcli("resume", "last")
    assert ended.code == 7
    assert "in use by process" in ended.err


def test_broken_checkpoints_are_listed_and_refused(gradcli, stopped: Path) -> None:
    for path in (stopped / "checkpoints").iterdir():
        path.write_bytes(b"PK\x03\x04 torch was here")
    ended = gradcli("resume", "last")
    assert ended.code == 7
    assert "no valid checkpoint" in ended.err
    assert "zip archive" in ended.err


def test_a_broken_newest_checkpoint_falls_back_with_a_note(gradcli, stopped: Path) -> None:
    (stopped / "checkpoints" / "step-00000004.safetensors").write_bytes(b"1234567")
    ended = gradcli("resume", "last")
    assert ended.code == 0
    assert "skipped step-00000004.safetensors" in ended.err
    assert "7 bytes" in ended.err


def test_log_lines_are_strict_and_steps_rise(gradcli, stopped: Path) -> None:
    with (stopped / "log.jsonl").open("a") as file:
        file.write('{"event": "step", "step": 5}\n{"event": "st')
    gradcli("resume", "last")
    lines = (stopped / "log.jsonl").read_text().splitlines()
    records = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    steps = [one["step"] for one in records if one["event"] == "step"]
    assert steps == list(range(1, 19))
