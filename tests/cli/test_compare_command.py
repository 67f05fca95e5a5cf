"""`gradcli compare`: same bits or not, from which step on, and what may be why."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from points import gradcli
from refusals import refused

from gradcli.engine.device import cpu
from gradcli.train.lock import RunLock

__all__ = ["gradcli", "refused"]

FORMAT1 = Path(__file__).parents[1] / "data" / "runs-format1" / "runs"


def train(gradcli: Any, name: str, *options: str) -> Path:
    assert gradcli("train", "dots.yaml", "--name", name, *options).code == 0
    (run,) = Path("runs", name).iterdir()
    return run


def change(file: Path, **values: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def pair(gradcli: Any, *names: str) -> Any:
    ended = gradcli("compare", *names, "--json")
    assert ended.code == 0
    (found,) = ended.json["comparisons"]
    return found


def kinds(found: Any) -> set[str]:
    return {reason["kind"] for reason in found["reasons"]}


def test_the_same_training_twice_has_the_same_bits(gradcli) -> None:
    train(gradcli, "a")
    train(gradcli, "b", "--threads", "1")
    found = pair(gradcli, "a", "b")
    assert (found["same_bits"], found["same_weights"], found["reasons"]) == (True, True, [])
    assert (found["steps_in_common"], found["first_difference"]) == (18, None)
    assert [one["key"] for one in found["config"]] == ["name"]
    ended = gradcli("compare", "a", "b", "--same-bits")
    assert ended.code == 0
    assert "same bits: 18 losses in common and the weights are equal" in ended.out


def test_a_changed_rate_is_named_with_the_first_step_that_differs(gradcli) -> None:
    train(gradcli, "a")
    train(gradcli, "b", "-s", "optim.lr=0.06")
    found = pair(gradcli, "a", "b")
    assert found["same_bits"] is False
    first = found["first_difference"]
    assert (first["step"], first["key"], found["same_until"]) == (2, "loss", 1)
    assert first["base"] != first["other"]
    (row,) = (one for one in found["config"] if one["key"] == "optim.lr")
    assert (row["base"]["value"], row["run"]["value"], row["may_matter"]) == (0.05, 0.06, True)
    assert kinds(found) == {"config"}
    shown = gradcli("compare", "a", "b").out
    assert f"differs first at step 2, {first['base']} against {first['other']}" in shown
    assert "equal up to step 1" in shown
    assert "  optim.lr: 0.05" in shown


def test_same_bits_exits_6_on_a_difference(gradcli) -> None:
    train(gradcli, "a")
    train(gradcli, "b", "-s", "train.seed=6")
    ended = gradcli("compare", "a", "b", "--same-bits")
    assert (ended.code, "the loss differs first at step 1" in ended.err) == (6, True)
    assert "train.seed: 5" in ended.out


def test_other_data_are_named_by_their_role(gradcli, monkeypatch: pytest.MonkeyPatch) -> None:
    train(gradcli, "a")
    run = train(gradcli, "b", "-s", "data.train=41")
    change(run / "manifest.json", data={"train": "ff"}, files={"train": "/data/new.csv"})
    found = pair(gradcli, "a", "b")
    assert {"data", "config"} == kinds(found)
    assert "sha256 ff of /data/new.csv" in str(found["reasons"])


@pytest.mark.skipif(len(cpu.usable_isas()) < 2, reason="one instruction set only")
def test_another_instruction_set_is_the_reason(gradcli) -> None:
    train(gradcli, "a")
    train(gradcli, "b", "--isa", "baseline")
    found = pair(gradcli, "a", "b")
    if cpu.isa() == "baseline":
        pytest.skip("the fastest one is the baseline")
    assert found["same_bits"] is False
    assert kinds(found) == {"instruction set"}
    assert [found["reasons"][0][side] for side in ("base", "run")] == [cpu.isa(), "baseline"]


@pytest.mark.parametrize(
    ("kind", "key", "values"),
    [
        ("device", "origin", {"device": "cuda", "group": "cuda"}),
        ("build", "origin", {"compiler": "clang 99"}),
        ("build", "origin", {"source": "0" * 64}),
        ("gradcli", "origin", {"commit": "0" * 40}),
        ("versions", "versions", {"python": "9.9"}),
    ],
)
def test_what_is_recorded_and_differs_may_be_why(
    gradcli, kind: str, key: str, values: dict[str, str]
) -> None:
    train(gradcli, "a")
    shutil.copytree("runs/a", "runs/b")
    (run,) = Path("runs/b").iterdir()
    manifest = json.loads((run / "manifest.json").read_text())
    change(run / "manifest.json", **{key: {**manifest[key], **values}})
    assert pair(gradcli, "a", "b")["reasons"] == []  # the bits are the same: nothing to explain
    change(run / "status.json", weights_sha256="0" * 64)
    found = pair(gradcli, "a", "b")
    assert kind in kinds(found)
    assert "the weights differ, though 18 losses in common are equal" in found["verdict"]


def test_a_difference_that_nothing_explains_is_said_to_be_one(gradcli) -> None:
    train(gradcli, "a")
    shutil.copytree("runs/a", "runs/b")
    for run in Path("runs").glob("*/*"):
        origin = json.loads((run / "manifest.json").read_text())["origin"]
        change(run / "manifest.json", origin={**origin, "commit": "0" * 40})
    (log,) = Path("runs/b").glob("*/log.jsonl")
    lines = log.read_text().splitlines(keepends=True)
    record = json.loads(lines[4])
    lines[4] = json.dumps({**record, "loss": record["loss"] * (1 + 2**-52)}) + "\n"
    log.write_text("".join(lines))
    ended = gradcli("compare", "a", "b")
    assert f"the loss differs first at step {record['step']}" in ended.out
    assert "no recorded difference can be why" in ended.out


def test_a_layer_between_others_is_one_difference(gradcli) -> None:
    train(gradcli, "a")
    model = "[{linear: 8}, relu, {dropout: 0.2}, {linear: 2}]"
    train(gradcli, "b", "-s", f"model={model}")
    keys = [one["key"] for one in pair(gradcli, "a", "b")["config"]]
    assert keys == ["name", "model.1"]


def test_a_fork_is_the_origin_of_its_value(gradcli) -> None:
    train(gradcli, "a", "--max-steps", "6")
    shutil.copytree("runs/a", "runs/b")
    assert gradcli("resume", "a").code == 0
    assert gradcli("resume", "b", "-s", "optim.lr=0.06").code == 0
    found = pair(gradcli, "a", "b")
    (row,) = (one for one in found["config"] if one["key"] == "optim.lr")
    assert row["run"] == {"value": 0.06, "origin": "a fork at step 6"}
    assert found["first_difference"]["step"] == 8  # step 7 is the first with the new rate


def test_more_than_two_runs_are_compared_with_the_first(gradcli) -> None:
    for name, seed in (("a", 5), ("b", 6), ("c", 5)):
        train(gradcli, name, "-s", f"train.seed={seed}")
    ended = gradcli("compare", "a", "b", "c", "--json")
    assert [one["same_bits"] for one in ended.json["comparisons"]] == [False, True]
    assert ended.json["same_bits"] is False
    assert gradcli("compare", "a", "b", "c").out.count("not the same bits") == 1


def test_logs_without_a_common_step_say_so(gradcli) -> None:
    train(gradcli, "a")
    run = train(gradcli, "b")
    log = run / "log.jsonl"
    log.write_text(log.read_text().replace('"step": 1', '"step": 9001'))
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:1]))
    ended = gradcli("compare", "a", "b")
    assert (ended.code, "the logs have no step in common" in ended.err) == (0, True)
    assert "same bits: the weights are equal" in ended.out


def test_a_run_without_a_log_or_a_status_is_compared_by_the_rest(gradcli) -> None:
    train(gradcli, "a")
    run = train(gradcli, "b", "-s", "optim.lr=0.06")
    (run / "log.jsonl").unlink()
    (run / "status.json").write_text("x")
    ended = gradcli("compare", "a", "b")
    assert ended.code == 0
    assert "log.jsonl is absent" in ended.err
    assert "whether the weights are equal is not known" in ended.err
    assert "optim.lr" in ended.out
    assert gradcli("compare", "a", "b", "--same-bits").code == 6


@pytest.mark.parametrize("name", ["resolved.yaml", "manifest.json", "log.jsonl", "plan.json"])
@pytest.mark.parametrize("text", ["", "[1]", '{"a": [', "\x00", "event: 1\n"])
def test_a_damaged_file_is_named_and_never_ends_it(gradcli, name: str, text: str) -> None:
    train(gradcli, "a", "--max-steps", "2")
    run = train(gradcli, "b", "--max-steps", "2")
    (run / name).write_text(text)
    assert gradcli("compare", "a", "b").code == 0
    assert gradcli("compare", "b", "a", "--json").code == 0


def test_a_run_of_an_older_version_is_compared(gradcli) -> None:
    shutil.copytree(FORMAT1, "old")
    train(gradcli, "a")
    for name in ("houses", "pictures", "words"):
        ended = gradcli("compare", str(next(Path("old", name).iterdir())), "a")
        assert (ended.code, "not the same bits" in ended.out) == (0, True)


def test_hostile_texts_do_not_steer_a_terminal(gradcli, monkeypatch: pytest.MonkeyPatch) -> None:
    train(gradcli, "a")
    run = train(gradcli, "b")
    change(run / "manifest.json", data={"\x1b[2J": "\x1b]0;x\x07"}, files={"\x1b[2J": ["\x1b"]})
    change(run / "status.json", weights_sha256="\x1b[31m", metrics={"\x1b[2Jx": 1.0})
    monkeypatch.setattr("gradcli.cli.output.is_terminal", lambda stream: True)
    ended = gradcli("compare", "a", "b", "--color", "never")
    assert ended.code == 0
    assert "\x1b" not in ended.out + ended.err


def test_fewer_than_two_runs_are_refused(gradcli, refused) -> None:
    refused(2, "two runs or more are compared, got 0 runs", "compare")
    refused(2, "two runs or more are compared, got 1 run", "compare", "a")


def test_what_is_no_run_is_refused(gradcli, refused) -> None:
    train(gradcli, "dots", "--max-steps", "1")
    refused(7, "no run 'dotts' in runs; did you mean 'dots'?", "compare", "dots", "dotts")
    refused(2, "whole runs are compared, not a checkpoint", "compare", "dots", "dots@best")
    refused(7, "is not a run", "compare", "dots", ".")
    refused(7, "no run ''", "compare", "dots", "")


@pytest.mark.parametrize("name", ["\0", "x" * 5000, "../..", "a/../b", "\x1b[2J", "dots\ndots"])
def test_an_odd_name_is_no_run(gradcli, refused, name: str) -> None:
    train(gradcli, "dots", "--max-steps", "1")
    ended = refused(7, "error[E702]", "compare", "dots", name)
    assert "\x1b" not in ended.err


def test_a_run_that_goes_on_is_compared_as_far_as_it_came(gradcli) -> None:
    train(gradcli, "a")
    run = train(gradcli, "b", "--max-steps", "6")
    lock = RunLock(run / "lock")
    change(run / "status.json", status="running", weights_sha256=None)
    ended = gradcli("compare", "a", "b")
    lock.release()
    assert (ended.code, "runs/b" in ended.out, ", running, step 6" in ended.out) == (0, True, True)
    assert "6 losses in common are equal" in ended.out
    assert "whether the weights are equal is not known: b has no weights_sha256" in ended.err


def test_a_run_that_may_not_be_read_is_named(
    gradcli, refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = train(gradcli, "dots", "--max-steps", "1")

    def forbidden(path: Path) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr("gradcli.train.run_name.is_run", forbidden)  # root may read everything
    refused(7, f"cannot read {run}: Permission denied", "compare", str(run), "dots")
