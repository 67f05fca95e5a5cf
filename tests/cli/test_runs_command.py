"""`gradcli runs`: what it says of each run, in which order, and of runs that are damaged."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from points import gradcli
from refusals import refused

from gradcli.train.lock import RunLock, is_held
from gradcli.train.metrics import METRICS
from gradcli.train.run_list import COLUMNS, LOWER, STATES, direction, runs_in

__all__ = ["gradcli", "refused"]


def make(name: str, day: int, status: object = None, **others: Any) -> Path:
    """A run that has only what a list looks at; `status` may be a whole text."""
    path = Path("runs", name, f"202601{day:02d}-120000Z-001")
    path.mkdir(parents=True)
    path.joinpath("resolved.yaml").write_text("gradcli: 1\n")
    if status is not None:
        value = {"format": 1, "status": status, "step": 5, "steps": 9, **others}
        text = status if str(status).startswith(("{", "[", "x")) else json.dumps(value)
        path.joinpath("status.json").write_text(str(text))
    return path


def order(ended: Any) -> list[str]:
    return [row["name"] for row in ended.json["runs"]]


def test_a_run_is_listed_with_what_it_reached(gradcli) -> None:
    gradcli("train", "dots.yaml")
    (row,) = gradcli("runs", "--json").json["runs"]
    status = json.loads(Path(row["run"], "status.json").read_text())
    assert (row["name"], row["status"], row["step"]) == ("dots", "finished", status["step"])
    assert row["best"] == {key: status["best"][key] for key in ("metric", "value")}
    assert row["best"]["metric"] == "val.accuracy"
    assert row["metrics"] == status["metrics"]
    files = (one for one in Path(row["run"]).rglob("*") if one.is_file())
    assert row["bytes"] == sum(one.stat().st_size for one in files)
    shown = gradcli("runs").out
    assert f"val.accuracy {row['best']['value']:.4g}" in shown
    assert Path(row["run"]).name in shown


def test_runs_are_sorted_by_a_figure_its_best_first_and_runs_without_it_last(gradcli) -> None:
    make("low", 1, "finished", metrics={"val.accuracy": 0.5, "val.loss": 0.1})
    make("none", 2, "finished")
    make("high", 3, "finished", metrics={"val.accuracy": 0.9, "val.loss": 0.7})
    assert order(gradcli("runs", "--json")) == ["high", "none", "low"]
    assert order(gradcli("runs", "--sort", "val.accuracy", "--json")) == ["high", "low", "none"]
    assert order(gradcli("runs", "--sort", "val.loss", "--json")) == ["low", "high", "none"]


def test_what_a_run_kept_counts_and_not_what_it_fell_back_to(gradcli) -> None:
    best = {"metric": "val.mine", "value": 0.2, "step": 3, "better": "lower"}
    make("kept", 1, "running", metrics={"val.mine": 0.8}, best=best)
    make("other", 2, "finished", metrics={"val.mine": 0.5, "val.loss": 3.0})
    first, second = gradcli("runs", "--sort", "val.mine", "--json").json["runs"]
    assert first["best"] == {"metric": "val.mine", "value": 0.2}
    assert second["best"] == {"metric": "val.mine", "value": 0.5}


@pytest.mark.parametrize("column", COLUMNS)
def test_each_column_sorts(gradcli, column: str) -> None:
    make("b", 1, "finished")
    make("a", 2, "failed", step=7, metrics={"val.loss": 1.0})
    names = order(gradcli("runs", "--sort", column, "--json"))
    assert names == ["a", "b"]


def test_a_run_that_was_killed_is_told_from_one_that_goes_on(gradcli) -> None:
    killed, alive = make("killed", 1, "running"), make("alive", 2, "running")
    killed.joinpath("lock").write_text('{"pid": 1, "host": "x", "started": "then"}')
    lock = RunLock(alive / "lock")
    assert is_held(alive / "lock")
    states = {row["name"]: row["status"] for row in gradcli("runs", "--json").json["runs"]}
    assert states == {"killed": "killed", "alive": "running"}
    assert order(gradcli("runs", "--status", "killed", "--json")) == ["killed"]
    lock.release()
    assert not is_held(alive / "lock")


@pytest.mark.parametrize(
    "text",
    ["[]", "x", "{}", '{"status": 5}', '{"status": "x", "step": true, "metrics": {"a": 1e999}}'],
)
def test_a_damaged_status_is_unknown(gradcli, text: str) -> None:
    make("odd", 1, text)
    (row,) = gradcli("runs", "--json").json["runs"]
    assert (row["status"], row["step"], row["metrics"]) == ("unknown", None, {})
    assert gradcli("runs").code == 0


def test_a_run_without_a_status_was_killed_before_it_began(gradcli) -> None:
    make("early", 1)
    assert gradcli("runs", "--json").json["runs"][0]["status"] == "killed"


def test_links_are_not_followed(gradcli, tmp_path: Path) -> None:
    inside = make("here", 1, "finished")
    outside = tmp_path / "elsewhere"
    inside.parent.rename(outside)
    Path("runs", "here").symlink_to(outside)
    make("real", 2, "finished").joinpath("far").symlink_to(outside)
    (run,) = runs_in(Path("runs"))
    assert run.name == "real"
    assert run.size < 4096


def test_no_runs_are_no_error(gradcli) -> None:
    ended = gradcli("runs")
    assert (ended.code, ended.out) == (0, "runs holds no runs yet; `gradcli train` makes one\n")
    assert gradcli("runs", "--json").json["runs"] == []


def test_a_wrong_question_has_its_nearest_answer(gradcli, refused) -> None:
    make("dots", 1, "finished", metrics={"val.accuracy": 0.5})
    refused(7, "did you mean 'dots'?", "runs", "--name", "dotts")
    refused(2, "did you mean 'val.accuracy'?", "runs", "--sort", "val.acuracy")
    refused(2, "is not one of", "runs", "--status", "lost")


def test_a_folder_of_runs_that_cannot_be_read_is_named(gradcli, refused) -> None:
    Path("file").write_text("")
    refused(7, "cannot read file: Not a directory", "runs", "--runs", "file")
    if os.getuid():
        make("dots", 1, "finished").parent.chmod(0)
        refused(7, "cannot read runs/dots: Permission denied", "runs")


def test_the_better_way_of_each_figure_is_that_of_its_metric() -> None:
    known = {name: METRICS[name].direction for name in METRICS}
    lower = {name for name, better in known.items() if better == "lower"}
    assert lower | {"loss"} == LOWER
    assert {direction(f"val.{name}") for name in known.keys() - lower} == {"higher"}


def test_the_states_of_the_help_are_those_of_the_list() -> None:
    from gradcli.cli.runs import STATES as OFFERED

    assert OFFERED == STATES
