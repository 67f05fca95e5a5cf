"""The moving average of the weights: updated, saved, resumed, evaluated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny import Silent, go_on, only_run, records, tiny_job, train

from gradcli import engine
from gradcli.engine import nn
from gradcli.errors import CheckpointError
from gradcli.train.average import Average
from gradcli.train.directory import find_checkpoint
from gradcli.train.evaluate import Evaluation
from gradcli.train.job import Ema
from gradcli.train.state import restore

SETTINGS = {"ema": Ema(0.75), "checkpoint_every": 4}


class Killed(BaseException):
    """Stands for a kill: nothing below catches it."""


class KilledAt(Silent):
    """Ends the run after a step."""

    def __init__(self, last: int) -> None:
        self.last = last

    def on_step(self, step: int, loss: float, rate: float) -> None:
        if step == self.last:
            raise Killed


def test_the_average_follows_its_formula() -> None:
    model = nn.Linear(2, 1, bias=False)
    average = Average(model, Ema(0.75, warmup=False))
    expected = [list(row) for row in model.weight.tolist()]
    for step in range(5):
        with engine.no_grad():
            model.weight.fill_(float(step))
        average.update(engine.tensor(average.decay(step + 1), dtype=engine.float64))
        expected = [[0.75 * value + 0.25 * step for value in row] for row in expected]
        assert average.tensors["weight"].tolist()[0] == pytest.approx(expected[0], rel=1e-6)


def test_in_place_gives_the_weights_back_after_an_error() -> None:
    model = nn.Linear(2, 1)
    average = Average(model, Ema(0.5))
    with engine.no_grad():
        model.weight.fill_(3.0)
    with pytest.raises(Killed), average.in_place():
        assert model.weight.tolist() == average.tensors["weight"].tolist()
        raise Killed
    assert model.weight.tolist() == [[3.0, 3.0]]


def test_frozen_weights_have_no_average() -> None:
    model = nn.Linear(2, 1)
    model.bias.requires_grad_(False)
    assert list(Average(model, Ema(0.5)).tensors) == ["weight"]


def saved(run: Path | str) -> dict[str, bytes]:
    tensors = find_checkpoint(Path(run), "last")[1].tensors
    return {name: bytes(one.data) for name, one in tensors.items()}


@pytest.mark.parametrize("step", [3, 6, 11])
def test_a_resumed_average_has_the_same_bits(tmp_path: Path, step: int) -> None:
    whole = train(tmp_path / "a", tiny_job(settings=SETTINGS))
    with pytest.raises(Killed):
        train(tmp_path / "b", tiny_job(settings=SETTINGS), reporter=KilledAt(step))
    resumed = go_on(only_run(tmp_path / "b"), tiny_job(settings=SETTINGS))
    assert saved(resumed.run) == saved(whole.run)
    assert resumed.metrics == whole.metrics


def test_captured_and_eager_averages_have_the_same_bits(tmp_path: Path) -> None:
    runs = [
        train(tmp_path / str(capture), tiny_job(settings={**SETTINGS, "capture": capture})).run
        for capture in (True, False)
    ]
    assert saved(runs[0]) == saved(runs[1])
    assert saved(runs[0])["ema.0.weight"] != saved(runs[0])["model.0.weight"]


def test_the_average_changes_no_step_but_what_is_measured(tmp_path: Path) -> None:
    plain = train(tmp_path / "a")
    averaged = train(tmp_path / "b", tiny_job(settings={"ema": Ema(0.75)}))
    assert averaged.weights_sha256 == plain.weights_sha256
    assert averaged.metrics["val.loss"] != plain.metrics["val.loss"]


def test_a_trained_model_is_used_with_its_average(tmp_path: Path) -> None:
    result = train(tmp_path, tiny_job(settings=SETTINGS))
    job = tiny_job(settings=SETTINGS)
    restore(find_checkpoint(Path(result.run), "last")[1].tensors, job.model, None, "last")
    figures = Evaluation(job, job.dataset.splits["test"], "test").run()
    assert figures["test.loss"] == result.metrics["test.loss"]
    logged = [one for one in records(result.run) if one["event"] == "test"]
    assert json.dumps(logged[0]["test.loss"]) == json.dumps(figures["test.loss"])


def test_a_checkpoint_without_the_average_is_refused(tmp_path: Path) -> None:
    result = train(tmp_path)
    job = tiny_job(settings=SETTINGS)
    found = find_checkpoint(Path(result.run), "last")[1].tensors
    with pytest.raises(CheckpointError) as caught:
        restore(found, job.model, job.optimizer, "last", Average(job.model, Ema(0.5)))
    assert any("missing: ema.0.weight" in note for note in caught.value.notes)


def test_running_statistics_have_an_average_unless_left_out() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    weights = ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert list(Average(model, Ema(0.5, buffers=False)).tensors) == weights
    average = Average(model, Ema(0.5, warmup=False))
    assert list(average.tensors) == [*weights, "1.running_mean", "1.running_var"]
    with engine.no_grad():
        model[1].running_mean.fill_(4.0)
    average.update(engine.tensor(0.5, dtype=engine.float64))
    assert average.tensors["1.running_mean"].tolist() == [2.0] * 3
    with average.in_place():
        assert model[1].running_mean.tolist() == [2.0] * 3
    assert model[1].running_mean.tolist() == [4.0] * 3


def test_a_warm_up_keeps_less_at_first() -> None:
    average = Average(nn.Linear(2, 1), Ema(0.9))
    assert [average.decay(step) for step in (1, 10, 80, 82)] == [2 / 11, 11 / 20, 0.9, 0.9]
    assert Average(nn.Linear(2, 1), Ema(0.9, warmup=False)).decay(1) == 0.9
