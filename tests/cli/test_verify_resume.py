"""`train --verify-resume`: a second run is stopped, resumed, and compared with the whole one."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from points import CONFIG, Ended, gradcli, only_run

from gradcli.engine import optim
from gradcli.train import disk, log, verification
from gradcli.train.elsewhere import SilentReporter

__all__ = ["gradcli"]

Command = Callable[..., Ended]


def verdict(run: Path) -> Any:
    return json.loads((run / "manifest.json").read_text())["verify_resume"]


def test_a_resumed_run_is_the_whole_one_and_the_manifest_says_so(gradcli: Command) -> None:
    whole = gradcli("train", "dots.yaml", "--name", "plain", "--json").json
    ended = gradcli("train", "dots.yaml", "--verify-resume")
    assert ended.code == 0
    found = verdict(only_run())
    assert found.pop("seconds") >= 0
    step = found.pop("step")
    assert 1 <= step < 18
    assert found == {"steps": 18, "same": True, "log": True, "weights": True, "differs": None}
    line = f"resume verified: stopped at step {step} and resumed: the same weights, bit for bit"
    assert line in ended.out
    assert f"a second run stops at step {step} of 18" in ended.err
    assert whole["weights_sha256"] in ended.out
    assert not (only_run() / verification.FOLDER).exists()


@pytest.mark.parametrize(
    "changes",
    [
        [],
        ["train.ema=0.9", "train.micro_batch=3", "train.best=null"],
        ["train.capture=false", "train.clip=0.5", "optim={name: sgd, lr: 0.1, momentum: 0.9}"],
        ["train.eval_every=4", "train.checkpoint_every=5", "train.log_every=7"],
        ["schedule={name: plateau, metric: val.loss, patience: 1}", "train.eval_every=2"],
        ["train.early_stop={metric: val.loss, patience: 1}", "train.eval_every=3", "optim.lr=0.5"],
    ],
)
@pytest.mark.parametrize("step", [1, 5, 12])
def test_from_any_step_whatever_a_step_keeps(
    gradcli: Command, step: int, changes: list[str]
) -> None:
    overrides = [part for change in changes for part in ("-s", change)]
    ended = gradcli("train", "dots.yaml", "--verify-step", str(step), "--json", *overrides)
    assert ended.code == 0
    found = ended.json["verify_resume"]
    assert found["same"] is True
    assert found == verdict(only_run())
    assert found["step"] == step if found["steps"] > step else found["step"] < found["steps"]


def test_own_name_length_and_first_weights_are_those_of_the_run(gradcli: Command) -> None:
    gradcli("train", "dots.yaml", "--max-steps", "5")
    before = ("--from", "dots", "--from-optimizer", "--name", "next")
    ended = gradcli(
        "train", "dots.yaml", *before, "--max-steps", "7", "--verify-step", "3", "--json"
    )
    assert ended.code == 0
    assert ended.json["verify_resume"]["same"] is True
    assert ended.json["verify_resume"]["steps"] == 7


def test_the_second_run_asks_for_no_more_disk_than_its_own_and_plans_nothing(
    gradcli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, checks = disk.check_room, []

    def note(folder: Path, size: int, files: int, keep: int) -> None:
        checks.append((verification.FOLDER in folder.parts, files))
        usual(folder, size, files, keep)

    monkeypatch.setattr(disk, "check_room", note)
    sheets: list[str] = []

    def sheet(config: Any, device: str, free: int | None) -> dict[str, Any]:
        del device, free
        sheets.append(config.name)
        return {}

    monkeypatch.setattr("gradcli.bench.sheet.sheet", sheet)
    assert gradcli("train", "dots.yaml", "--verify-step", "6").code == 0
    (_, both), *second = checks
    assert all(own for own, _ in second)
    assert both >= 2 * max(files for _, files in second)
    assert sheets == ["dots"]


@pytest.mark.parametrize("keeps", ["exp_avg", ""])
def test_an_optimizer_state_that_no_checkpoint_has_is_found(
    gradcli: Command, monkeypatch: pytest.MonkeyPatch, keeps: str
) -> None:
    usual = optim.Optimizer.state_tensors

    def forgetful(optimizer: Any) -> dict[str, Any]:
        names = ("exp_avg.",) if keeps else ()
        return {name: one for name, one in usual(optimizer).items() if name.startswith(names)}

    monkeypatch.setattr(optim.Optimizer, "state_tensors", forgetful)
    ended = gradcli("train", "dots.yaml", "--verify-step", "6")
    assert ended.code == 6
    assert (
        "error[E602] a run that was stopped at step 6 and resumed is not the whole run" in ended.err
    )
    assert "loss in line 9 of log.jsonl (step 8):" in ended.err
    assert "resume verified: stopped at step 6 and resumed: not the same" in ended.out
    found = verdict(only_run())
    assert (found["same"], found["log"], found["weights"]) == (False, False, False)
    assert found["differs"].startswith("loss in line 9")
    assert not (only_run() / verification.FOLDER).exists()


def test_a_log_that_lacks_a_record_is_found(
    gradcli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = log.Log.write

    def forgetful(self: log.Log, record: dict[str, Any]) -> None:
        if verification.FOLDER not in str(self.path) or record["step"] != 9:
            usual(self, record)

    monkeypatch.setattr(log.Log, "write", forgetful)
    ended = gradcli("train", "dots.yaml", "--verify-step", "6")
    assert ended.code == 6
    found = verdict(only_run())
    assert (found["log"], found["weights"]) == (False, True)
    assert found["differs"].startswith("step in line 10 of log.jsonl (step 9): 9 in the whole run")


def test_a_signal_while_the_second_run_trains_leaves_the_first_one(
    gradcli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: object, step: int, loss: float, rate: float) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(SilentReporter, "on_step", interrupt)
    ended = gradcli("train", "dots.yaml", "--verify-step", "6")
    assert ended.code == 130
    assert "stopped while the resume was verified, without a verdict" in ended.err
    run = only_run()
    assert json.loads((run / "status.json").read_text())["status"] == "finished"
    assert not (run / verification.FOLDER).exists()
    assert "verify_resume" not in json.loads((run / "manifest.json").read_text())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--max-steps", "1", "--verify-resume"],
            "stops between two steps, and this run has 1 step",
        ),
        (["-s", "train.epochs=0", "--verify-resume"], "and this run has 0 steps"),
        (["--verify-step", "18"], "--verify-step 18 is not before the end: this run has 18 steps"),
        (["--verify-step", "5", "--max-steps", "5"], "not before the end: this run has 5 steps"),
        (["--verify-step", "0"], "0 is not in the range x>=1"),
        (
            ["--continue", "--verify-resume"],
            "--verify-resume is for new runs: leave --continue out",
        ),
    ],
)
def test_a_run_that_cannot_be_stopped_between_two_steps_is_refused(
    gradcli: Command, arguments: list[str], sentence: str
) -> None:
    ended = gradcli("train", "dots.yaml", *arguments)
    assert ended.code == 2
    assert sentence in ended.err
    assert not Path("runs").exists()


def test_ranks_do_not_verify_a_resume(gradcli: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcli.engine.distributed.size", lambda: 2)
    ended = gradcli("train", "dots.yaml", "--verify-resume")
    assert ended.code == 2
    assert "error[E807] --verify-resume trains in one process" in ended.err


def test_a_missed_expectation_is_told_beside_the_verdict(gradcli: Command) -> None:
    Path("dots.yaml").write_text(CONFIG + 'expect: {test.accuracy: "> 1"}\n')
    ended = gradcli("train", "dots.yaml", "--verify-resume")
    assert ended.code == 6
    assert "E601" in ended.err
    assert "the same weights, bit for bit" in ended.out
