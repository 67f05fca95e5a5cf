"""Runs that were killed before their first checkpoint: resumed from step 0, and named elsewhere."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from points import VERSION, Ended, gradcli, only_run
from refusals import begin, finish

import gradcli as package
from gradcli.errors import CheckpointError

__all__ = ["gradcli"]

Command = Callable[..., Ended]
KILL = """
import os
from pathlib import Path
replace = Path.replace
def name(path, target):
    if Path(target).name == {0!r}:
        {1}
        os.kill(os.getpid(), 9)
    return replace(path, target)
Path.replace = name
"""
BEFORE, AFTER = "pass", "replace(path, target)"
PLACES = [("resolved.yaml", AFTER), ("status.json", AFTER), ("step-00000000.safetensors", BEFORE)]


def kill(*arguments: str, at: tuple[str, str] = PLACES[-1]) -> None:
    """`gradcli train dots.yaml`, killed where it gives a file its name."""
    killed = begin(Path.cwd(), "train", "dots.yaml", *arguments, before=KILL.format(*at))
    assert finish(killed).code == -signal.SIGKILL


def steps(run: Path) -> list[int]:
    records = map(json.loads, (run / "log.jsonl").read_text().splitlines())
    return [one["step"] for one in records if one["event"] == "step"]


def whole(gradcli: Command, *more: str) -> dict[str, object]:
    json_of = gradcli("train", "dots.yaml", "--name", "whole", "--json", "--runs", "others", *more)
    return dict(json_of.json)


@pytest.mark.parametrize("at", PLACES)
@pytest.mark.parametrize("how", ["last", "path"])
def test_it_goes_on_from_step_0_to_the_same_bits(
    gradcli: Command, at: tuple[str, str], how: str
) -> None:
    kill(at=at)
    run = only_run()
    assert not list(run.glob("checkpoints/step-*"))
    ended = gradcli("resume", "last" if how == "last" else str(run))
    assert ended.code == 0
    assert f"{run} has no checkpoint yet: it goes on from step 0" in ended.err
    result = gradcli("eval", "last", "--json", "--checkpoint", "last").json
    assert result["weights_sha256"] == whole(gradcli)["weights_sha256"]
    assert steps(run) == list(range(1, 19))
    assert not list(run.rglob("*.tmp"))
    files = {path.name for path in run.iterdir()}
    assert {"manifest.json", "plan.json", "config.yaml", "resolved.yaml"} <= files


def test_killed_again_it_still_goes_on(gradcli: Command) -> None:
    kill(at=PLACES[1])
    again = begin(Path.cwd(), "resume", "last", before=KILL.format(*PLACES[2]))
    assert finish(again).code == -signal.SIGKILL
    assert (
        gradcli("resume", "last", "--json").json["weights_sha256"]
        == (whole(gradcli)["weights_sha256"])
    )


@pytest.mark.parametrize("how", ["dots", "path"])
def test_a_copy_without_the_empty_folder_of_checkpoints_goes_on(gradcli: Command, how: str) -> None:
    kill()
    run = only_run()
    shutil.rmtree(run / "checkpoints")
    argument = how if how == "dots" else str(run)
    assert f"`gradcli resume {run}` goes on from step 0" in gradcli("eval", argument).err
    ended = gradcli("resume", argument, "--json")
    assert ended.json["weights_sha256"] == whole(gradcli)["weights_sha256"]


def test_a_folder_that_is_no_run_yet_is_passed_over(gradcli: Command) -> None:
    kill(at=("resolved.yaml", BEFORE))
    assert "holds no runs yet" in gradcli("resume", "last").err
    assert "it has no resolved.yaml" in gradcli("resume", str(only_run())).err


def test_other_commands_say_how_it_goes_on(gradcli: Command) -> None:
    gradcli("train", "dots.yaml", "--name", "older")
    kill()
    run = only_run()
    Path("new.txt").write_text("0.1 0.2\n")
    cure = f"`gradcli resume {run}` goes on from step 0"
    for arguments in (
        ("eval", "last"),
        ("eval", "dots", "--checkpoint", "last"),
        ("eval", "last@7"),
        ("predict", "last", "new.txt"),
        ("predict", "dots@best", "new.txt"),
        ("train", "dots.yaml", "--from", "last"),
        ("resume", "last@last"),
    ):
        ended = gradcli(*arguments)
        assert (ended.code, cure in ended.err) == (7, True), ended.err
    with pytest.raises(CheckpointError, match="has no checkpoint yet"):
        package.load("last")


def test_changed_data_is_refused_unless_allowed(gradcli: Command, monkeypatch) -> None:
    kill()
    monkeypatch.setitem(VERSION, "sha256", "11")
    ended = gradcli("resume", "last")
    assert ended.code == 7
    assert "the data changed since the start of the run: points: sha256 was 00" in ended.err
    assert gradcli("resume", "last", "--allow-data-change").code == 0


@pytest.mark.parametrize("manifest", ["", "[]", '{"data": 7}'])
def test_without_a_manifest_that_can_be_read_it_goes_on(gradcli: Command, manifest: str) -> None:
    kill()
    (only_run() / "manifest.json").write_text(manifest)
    assert gradcli("resume", "last").code == 0


def test_new_values_are_no_fork_before_the_first_step(gradcli: Command) -> None:
    kill()
    lr = ("-s", "optim.lr=0.01", "-s", "train.epochs=2")
    ended = gradcli("resume", "last", "--json", *lr)
    assert ended.json["weights_sha256"] == whole(gradcli, *lr)["weights_sha256"]
    assert "forks" not in json.loads((only_run() / "manifest.json").read_text())
    longer = gradcli("resume", "last", "--json", "-s", "train.epochs=3")
    assert (longer.code, longer.json["steps"]) == (0, 18)


def test_first_weights_of_another_run_are_taken_again(gradcli: Command) -> None:
    gradcli("train", "dots.yaml", "--name", "older", "--max-steps", "6")
    kill("--from", "older")
    ended = gradcli("resume", "dots", "--json")
    first = whole(gradcli, "--from", str(next(Path("runs/older").iterdir())))
    assert ended.json["weights_sha256"] == first["weights_sha256"] != whole(gradcli)


def test_a_run_whose_checkpoints_were_removed_is_not_begun_again(gradcli: Command) -> None:
    gradcli("train", "dots.yaml", "--max-steps", "4")
    for path in only_run().glob("checkpoints/*"):
        path.unlink()
    ended = gradcli("resume", "last")
    assert (ended.code, "holds no valid checkpoint" in ended.err) == (7, True)
