"""`gradcli train` from the config to the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from points import CONFIG, gradcli, only_run

__all__ = ["gradcli"]


def test_a_run_has_its_files_and_says_how_it_ended(gradcli) -> None:
    ended = gradcli("train", "dots.yaml")
    assert ended.code == 0
    assert "finished: runs/dots/" in ended.out
    assert "test.accuracy" in ended.out
    run = only_run()
    assert (run / "config.yaml").read_text() == CONFIG
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["seed"] == 5
    assert manifest["device"] == "cpu"
    assert manifest["data"] == {"points": "00"}
    assert manifest["versions"]["gradcli"]


def test_json_is_one_object_on_stdout(gradcli) -> None:
    ended = gradcli("train", "dots.yaml", "--json")
    assert set(ended.json) == {
        "format",
        "run",
        "status",
        "steps",
        "seconds",
        "measured_step",
        "skipped",
        "metrics",
        "baseline",
        "absent_classes",
        "weights_sha256",
    }
    assert (ended.json["status"], ended.json["steps"]) == ("finished", 18)
    assert len(ended.json["weights_sha256"]) == 64
    assert ended.err == ""


def test_threads_do_not_change_the_weights(gradcli) -> None:
    hashes = {
        gradcli("train", "dots.yaml", "--json", "--threads", threads).json["weights_sha256"]
        for threads in ("1", "2", "3")
    }
    assert len(hashes) == 1


def test_the_resolved_config_repeats_the_run(gradcli) -> None:
    first = gradcli("train", "dots.yaml", "--json").json
    again = gradcli("train", f"{first['run']}/resolved.yaml", "--json").json
    assert again["weights_sha256"] == first["weights_sha256"]


def test_an_override_is_used(gradcli) -> None:
    assert gradcli("train", "dots.yaml", "--json", "-s", "train.epochs=1").json["steps"] == 6


def test_a_name_decides_the_directory(gradcli) -> None:
    ended = gradcli("train", "dots.yaml", "--json", "--name", "other", "--runs", "elsewhere")
    assert ended.json["run"].startswith("elsewhere/other/")


@pytest.mark.parametrize("name", ["../out", "a/b", "", "a\nb"])
def test_a_name_that_leads_elsewhere_is_refused(gradcli, name: str) -> None:
    ended = gradcli("train", "dots.yaml", "--name", name)
    assert ended.code == 2
    assert "cannot be a run's name" in ended.err
    assert sorted(one.name for one in Path().iterdir()) == ["dots.yaml"]


def test_max_steps_stops_and_says_so(gradcli) -> None:
    ended = gradcli("train", "dots.yaml", "--max-steps", "4")
    assert ended.code == 0
    assert "stopped by --max-steps at step 4 of 18" in ended.err


def test_a_missed_expectation_is_exit_6_with_the_result(gradcli) -> None:
    Path("dots.yaml").write_text(CONFIG + 'expect: {test.accuracy: ">= 2"}\n')
    ended = gradcli("train", "dots.yaml", "--json")
    assert ended.code == 6
    assert ended.json["status"] == "finished"
    assert "expected test.accuracy >= 2, got" in ended.err


def test_no_epochs_write_the_initial_checkpoint(gradcli) -> None:
    ended = gradcli("train", "dots.yaml", "-s", "train.epochs=0")
    assert ended.code == 0
    assert "initial weights" in ended.err
    assert (only_run() / "checkpoints" / "step-00000000.safetensors").exists()


def test_a_wrong_config_makes_no_directory(gradcli) -> None:
    ended = gradcli("train", "dots.yaml", "-s", "optim.lr=fast")
    assert ended.code == 2
    assert not Path("runs").exists()


def test_diverging_is_exit_5_with_a_place(gradcli) -> None:
    ended = gradcli(
        "train", "dots.yaml", "-s", "optim={name: sgd, lr: 1e30}", "-s", "train.epochs=9"
    )
    assert ended.code == 5
    assert "it began in layer 2 linear 2, op linear, forward: " in ended.err
    assert json.loads((only_run() / "status.json").read_text())["status"] == "failed"


def test_a_place_that_cannot_hold_runs_is_exit_7(gradcli) -> None:
    Path("runs").write_text("a file")
    ended = gradcli("train", "dots.yaml")
    assert ended.code == 7
    assert "cannot make a run" in ended.err
