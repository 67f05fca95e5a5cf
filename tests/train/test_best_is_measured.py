"""Where a best checkpoint is kept, it is what is measured, expected and used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny import Silent, go_on, records, status, tiny_job, train

from gradcli.train import checkpoint
from gradcli.train.directory import best_and_last, find_checkpoint
from gradcli.train.expectations import check_expectations
from gradcli.train.job import EarlyStop, Expectation
from gradcli.train.state import restore, weights_sha256

STEPS = 18
SPOILED = {"eval_every": 3, "keep": 10}  # and a rate that spoils the first weights


class Notes(Silent):
    """Keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def spoiled_job(**settings: Any) -> Any:
    """A training whose last weights are not its best."""
    job = tiny_job("sgd", settings={**SPOILED, **settings})
    for group in job.optimizer.param_groups:
        group["lr"] = 40.0
    return job


def evaluations(run: str) -> dict[int, dict[str, float]]:
    return {one["step"]: one for one in records(run) if one["event"] == "eval"}


@pytest.mark.parametrize(
    "settings",
    [
        {"best": "val.loss"},
        {"early_stop": EarlyStop("val.loss", patience=100)},
        {"best": "val.loss", "early_stop": EarlyStop("val.accuracy", patience=100)},
    ],
    ids=["best", "early_stop", "best wins"],
)
def test_the_summary_is_of_the_best_checkpoint(tmp_path: Path, settings: dict[str, Any]) -> None:
    job = spoiled_job(**settings)
    result = train(tmp_path, job)
    figures = evaluations(result.run)
    best = min(figures, key=lambda step: figures[step]["val.loss"])
    assert best < STEPS  # or the test shows nothing
    assert (result.measured_step, result.steps) == (best, STEPS)
    assert best_and_last(Path(result.run)) == (best, STEPS)
    assert result.metrics["val.loss"] == figures[best]["val.loss"]
    assert status(result.run).metrics == result.metrics
    assert status(result.run).measured_step == best
    name, last = find_checkpoint(Path(result.run), "last")
    model = spoiled_job().model
    restore(last.tensors, model, None, name)
    assert result.weights_sha256 == weights_sha256(model)
    (test,) = (one for one in records(result.run) if one["event"] == "test")
    assert test["measured_step"] == best


def test_the_last_is_measured_where_no_figure_is_named(tmp_path: Path) -> None:
    result = train(tmp_path, spoiled_job())
    assert result.measured_step == STEPS
    assert result.metrics["val.loss"] == evaluations(result.run)[STEPS]["val.loss"]


def test_an_expectation_is_held_against_the_best(tmp_path: Path) -> None:
    first = train(tmp_path, spoiled_job(best="val.loss"))
    figures = evaluations(first.run)
    between = (first.metrics["val.loss"] + figures[STEPS]["val.loss"]) / 2
    expect = (Expectation("val.loss", "<", between),)
    for settings, misses in (({"best": "val.loss"}, 0), ({}, 1)):
        job = replace(spoiled_job(**settings), expect=expect)
        result = train(tmp_path, job)
        assert len(status(result.run).missed) == misses
        if not misses:
            check_expectations(job, result)


def test_a_damaged_best_checkpoint_is_named_and_the_last_measured(tmp_path: Path) -> None:
    notes = Notes()
    job = spoiled_job(best="val.loss", epochs=2)
    result = train(tmp_path, job)
    best, _ = best_and_last(Path(result.run))
    assert best is not None
    path = Path(result.run) / "checkpoints" / checkpoint.file_name(best)
    path.write_bytes(path.read_bytes()[:100])
    longer = spoiled_job(best="val.loss", epochs=3)
    ended = go_on(result.run, longer, reporter=notes)
    assert any("the best checkpoint cannot be used" in note for note in notes.notes)
    assert ended.measured_step == ended.steps == STEPS


def test_a_resumed_training_measures_the_same_best(tmp_path: Path) -> None:
    whole = train(tmp_path, spoiled_job(best="val.loss"))
    part = train(tmp_path, spoiled_job(best="val.loss"), max_steps=12)
    ended = go_on(part.run, spoiled_job(best="val.loss"))
    assert (ended.measured_step, ended.metrics) == (whole.measured_step, whole.metrics)
    assert ended.weights_sha256 == whole.weights_sha256
