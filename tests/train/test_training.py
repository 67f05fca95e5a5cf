"""The loop: exact resume from any step, honest ends, nothing swallowed."""

from __future__ import annotations

import json
import math
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import Falling, Silent, go_on, only_run, records, status, tiny_job, train

from gradcli import engine
from gradcli.engine import nn
from gradcli.errors import (
    CheckpointError,
    ConfigError,
    ExpectationError,
    Interrupted,
    NumericsError,
    RunError,
    Stopped,
)
from gradcli.train import checkpoint, launch
from gradcli.train.directory import RunDirectory, find_checkpoint, read_pointer
from gradcli.train.expectations import check_expectations
from gradcli.train.job import EarlyStop, Expectation
from gradcli.train.metrics import METRICS
from gradcli.train.order import epoch_order
from gradcli.train.state import restore, tensors_of


class Notes(Silent):
    """Collects what a training says."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.steps: list[int] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def on_step(self, step: int, loss: float, rate: float) -> None:
        self.steps.append(step)


class Killed(BaseException):
    """Stands for a kill: nothing below catches it."""


def stop_after(step: int, error: BaseException | int) -> Notes:
    """A reporter that raises `error`, or sends it as a signal, after a step."""

    class Stopper(Notes):
        def on_step(self, at: int, loss: float, rate: float) -> None:
            super().on_step(at, loss, rate)
            if at == step and isinstance(error, int):
                os.kill(os.getpid(), error)
            elif at == step:
                raise error

    return Stopper()


def test_a_training_ends_with_every_file_and_figure(tmp_path: Path) -> None:
    result = train(tmp_path)
    run = Path(result.run)
    assert {one.name for one in run.iterdir()} == {
        *("config.yaml", "resolved.yaml", "manifest.json", "plan.json", "status.json"),
        *("origins.json", "log.jsonl", "checkpoints", "last", "lock"),
    }
    assert (result.status, result.steps) == ("finished", 18)
    assert set(result.metrics) == {"val.loss", "val.accuracy", "test.loss", "test.accuracy"}
    assert status(run).status == "finished"
    assert status(run).weights_sha256 == result.weights_sha256
    plan = json.loads((run / "plan.json").read_text())
    assert plan["total"] == 2 * 8 + 8 + 8 * 2 + 2
    steps = [record["step"] for record in records(run) if record["event"] == "step"]
    assert steps == list(range(1, 19))


def test_two_trainings_end_in_the_same_bits(tmp_path: Path) -> None:
    assert train(tmp_path).weights_sha256 == train(tmp_path).weights_sha256


def without_times(record):
    """A line of the log without what the clock says."""
    return {**record, "seconds": 0, "samples_per_second": 0, "wait_data": 0}


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("step", [1, 5, 6, 7, 12, 17])
@pytest.mark.parametrize("how", ["kill", "sigterm"])
def test_resumed_weights_equal_the_uninterrupted_ones(tmp_path, optimizer, step, how) -> None:
    settings = {"checkpoint_every": 4, "clip": 1.0, "best": "val.loss"}

    def job():
        return tiny_job(optimizer, settings=settings)

    whole = train(tmp_path / "a", job())
    with pytest.raises(Killed if how == "kill" else Stopped):
        reporter = stop_after(step, Killed() if how == "kill" else signal.SIGTERM)
        train(tmp_path / "b", job(), reporter=reporter)
    run = only_run(tmp_path / "b")
    resumed = go_on(run, job())
    assert resumed.weights_sha256 == whole.weights_sha256
    assert resumed.metrics == whole.metrics
    timeless = [list(map(without_times, records(one))) for one in (whole.run, run)]
    assert timeless[0] == timeless[1]


@pytest.mark.parametrize(
    ("number", "error", "word"),
    [(signal.SIGINT, Interrupted, "interrupted"), (signal.SIGTERM, Stopped, "stopped")],
)
def test_a_signal_in_the_evaluation_leaves_a_checkpoint(tmp_path, number, error, word) -> None:
    job = tiny_job()
    calls = []

    def on_batch(indices: list[int]) -> None:
        calls.append(indices)
        if len(calls) == 4:  # one in the preflight, three in the first evaluation
            os.kill(os.getpid(), number)

    job.dataset.splits["val"].on_batch = on_batch
    with pytest.raises(error, match="after step 6"):
        train(tmp_path, job)
    run = only_run(tmp_path)
    assert status(run).status == word
    assert find_checkpoint(run, "last")[1].meta.step == 6
    assert go_on(run).weights_sha256 == train(tmp_path / "whole").weights_sha256
    evaluated = [record["step"] for record in records(run) if record["event"] == "eval"]
    assert evaluated == [6, 12, 18]


def test_a_signal_in_a_save_is_answered_after_it(tmp_path, monkeypatch) -> None:
    write = checkpoint.write

    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        return write(*arguments)

    monkeypatch.setattr(checkpoint, "write", interrupted)
    with pytest.raises(Stopped, match="after step 0"):
        train(tmp_path)
    monkeypatch.undo()
    assert go_on(only_run(tmp_path)).steps == 18


def test_a_signal_in_the_final_test_can_be_resumed(tmp_path: Path) -> None:
    job = tiny_job()
    calls = []

    def on_batch(indices: list[int]) -> None:
        calls.append(indices)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    job.dataset.splits["test"].on_batch = on_batch
    with pytest.raises(Stopped, match="after step 18"):
        train(tmp_path, job)
    assert "test.accuracy" in go_on(only_run(tmp_path)).metrics


def test_nan_stops_before_the_update_and_names_the_place(tmp_path, monkeypatch) -> None:
    # The preflight would meet the bad sample too; here it must be the step.
    monkeypatch.setattr(launch, "preflight", lambda job: None)
    job = tiny_job(settings={"checkpoint_every": 1})
    job.dataset.splits["train"].poison = epoch_order(5, 0, 42).tolist()[25]
    with pytest.raises(
        NumericsError, match=r"loss of step 4 is nan.*inputs of the batch"
    ) as caught:
        train(tmp_path, job)
    assert caught.value.exit_code == 5
    run = only_run(tmp_path)
    assert status(run).status == "failed"
    assert "nan" in status(run).error
    assert find_checkpoint(run, "last")[1].meta.step == 3
    assert records(run)[-1]["loss"] is None
    assert records(run)[-1]["nonfinite"] == {"loss": "nan"}


def test_an_exploding_rate_names_a_layer_or_weight(tmp_path: Path) -> None:
    class Huge(Falling):
        def factor(self, step: int) -> float:
            return 1e30

    with pytest.raises(
        NumericsError, match=r"it began in layer 2 Linear, op linear, forward: 16 of 16 values"
    ):
        train(tmp_path, tiny_job("sgd", schedule=Huge(total=18)))


def test_no_steps_writes_the_initial_checkpoint(tmp_path: Path) -> None:
    notes = Notes()
    result = train(tmp_path, tiny_job(settings={"epochs": 0}), reporter=notes)
    assert (result.status, result.steps) == ("finished", 0)
    assert "initial weights" in notes.notes[-1]
    assert find_checkpoint(Path(result.run), "last")[1].meta.step == 0


def test_max_steps_stops_early_and_resume_ends_it(tmp_path: Path) -> None:
    job = tiny_job(expect=(Expectation("test.accuracy", ">", 2.0),))
    result = train(tmp_path, job, max_steps=4)
    assert (result.status, result.steps) == ("stopped", 4)
    check_expectations(job, result)
    assert go_on(result.run).weights_sha256 == train(tmp_path / "w").weights_sha256


def test_a_missed_expectation_is_told_after_saving(tmp_path: Path) -> None:
    job = tiny_job(expect=(Expectation("test.accuracy", ">", 2.0),))
    result = train(tmp_path, job)
    with pytest.raises(ExpectationError, match=r"expected test\.accuracy > 2, got"):
        check_expectations(job, result)
    assert len(status(result.run).missed) == 1


def test_nan_meets_no_expectation() -> None:
    assert not Expectation("a", ">=", 0.0).holds(math.nan)
    assert not Expectation("a", "<=", 0.0).holds(math.nan)


def test_the_best_checkpoint_is_kept_and_pointed_at(tmp_path: Path) -> None:
    result = train(tmp_path, tiny_job(settings={"best": "val.loss", "eval_every": 1}))
    found = [one for one in records(result.run) if one["event"] == "eval"]
    best = min(found, key=lambda one: one["val.loss"])
    name = read_pointer(Path(result.run), "best")
    assert name is not None
    assert checkpoint.step_of(name) == best["step"]
    assert find_checkpoint(Path(result.run), "best")[1].meta.best.value == best["val.loss"]


def test_early_stopping_counts_evaluations_without_improvement(tmp_path: Path) -> None:
    stop = EarlyStop("val.loss", patience=2, min_delta=1e9)
    notes = Notes()
    job = tiny_job(settings={"early_stop": stop, "epochs": 50})
    job = replace(job, resolved={})
    result = train(tmp_path, job, reporter=notes)
    assert (result.status, result.steps) == ("finished", 18)
    assert "stopped early" in notes.notes[-1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"best": "val.acuracy"},
            "train.best: no metric 'val.acuracy'.*did you mean 'val.accuracy'",
        ),
        ({"best": "test.loss"}, "train.best: no metric 'test.loss'"),
        ({"early_stop": EarlyStop("val.x", 2)}, "train.early_stop: no metric 'val.x'"),
        ({"batch": 50, "drop_last": True}, "42 training samples, batch 50"),
    ],
)
def test_what_would_fail_later_fails_before_a_directory_exists(tmp_path, settings, message) -> None:
    with pytest.raises(ConfigError, match=message):
        train(tmp_path, replace(tiny_job(settings=settings), resolved={}))
    assert list(tmp_path.iterdir()) == []


def test_a_matrix_judges_no_checkpoint(tmp_path: Path) -> None:
    metrics = {"confusion": METRICS["confusion"]()}
    with pytest.raises(ConfigError, match=r"train\.best: no metric 'val\.confusion'.*val\.loss"):
        train(tmp_path, tiny_job(settings={"best": "val.confusion"}, metrics=metrics, resolved={}))


def test_a_failing_first_save_leaves_no_directory(tmp_path, monkeypatch) -> None:
    def full(*arguments):
        raise CheckpointError("disk full")

    monkeypatch.setattr(checkpoint, "write", full)
    with pytest.raises(CheckpointError):
        train(tmp_path)
    assert list((tmp_path / "tiny").iterdir()) == []


def test_a_disk_that_fills_up_keeps_the_last_checkpoint(tmp_path, monkeypatch) -> None:
    write = checkpoint.write

    def full(directory, meta, tensors):
        if meta.step >= 12:
            raise CheckpointError("disk full")
        return write(directory, meta, tensors)

    monkeypatch.setattr(checkpoint, "write", full)
    with pytest.raises(CheckpointError):
        train(tmp_path)
    monkeypatch.undo()
    run = only_run(tmp_path)
    assert status(run).status == "failed"
    assert status(run).saved == 6
    assert go_on(run).weights_sha256 == train(tmp_path / "w").weights_sha256


def test_a_damaged_newest_checkpoint_falls_back_and_says_so(tmp_path: Path) -> None:
    whole = train(tmp_path / "w")
    with pytest.raises(Killed):
        train(tmp_path, reporter=stop_after(13, Killed()))
    run = only_run(tmp_path)
    newest = run / "checkpoints" / checkpoint.file_name(12)
    data = bytearray(newest.read_bytes())
    data[-3] ^= 4
    newest.write_bytes(data)
    notes = Notes()
    result = go_on(run, reporter=notes)
    assert "skipped step-00000012" in notes.notes[0]
    assert notes.steps[0] == 7
    assert result.weights_sha256 == whole.weights_sha256


def stopped_run(tmp_path: Path) -> Path:
    return Path(train(tmp_path, max_steps=4).run)


def test_another_optimizer_is_refused_with_theirs_and_ours(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="optimizer: the checkpoint has adam, the config sgd"):
        go_on(stopped_run(tmp_path), tiny_job("sgd"))


def test_another_seed_is_refused_with_theirs_and_ours(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="seed: the checkpoint has 5, the config 6"):
        go_on(stopped_run(tmp_path), tiny_job(settings={"seed": 6}))


def test_another_batch_is_refused_with_theirs_and_ours(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"train\.batch: the checkpoint has 8, the config 4"):
        go_on(stopped_run(tmp_path), tiny_job(settings={"batch": 4}))


def test_a_longer_training_may_be_resumed(tmp_path: Path) -> None:
    assert go_on(stopped_run(tmp_path), tiny_job(settings={"epochs": 4})).steps == 24


def test_another_model_gets_the_whole_list(tmp_path: Path) -> None:
    run = stopped_run(tmp_path)
    model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.ReLU(), nn.Linear(4, 2, bias=False))
    with pytest.raises(CheckpointError) as caught:
        restore(find_checkpoint(run, "last")[1].tensors, model, None, "x")
    assert caught.value.notes == (
        "missing: model.3.weight F32[2, 4]",
        "not in the model: model.2.bias F32[2]",
        "not in the model: model.2.weight F32[2, 8]",
        "model.0.weight: the checkpoint has F32[8, 2], the model F32[4, 2]",
        "model.0.bias: the checkpoint has F32[8], the model F32[4]",
    )


def test_changed_data_is_refused_unless_allowed(tmp_path: Path) -> None:
    run = stopped_run(tmp_path)
    job = tiny_job()
    job.dataset.sha256 = {"points": "11"}
    with pytest.raises(CheckpointError, match="points: sha256 was 00, is 11"):
        go_on(run, job)
    notes = Notes()
    assert go_on(run, job, reporter=notes, allow_data_change=True).steps == 18
    assert "sha256 was 00, is 11" in notes.notes[0]


def test_nan_in_the_weights_is_counted(tmp_path: Path) -> None:
    job = tiny_job()
    with engine.no_grad():
        weight = dict(job.model.state_dict())["0.weight"]
        weight.copy_(engine.full(tuple(weight.shape), float("nan")))
    with RunDirectory(stopped_run(tmp_path)) as run:
        meta = find_checkpoint(run.path, "last")[1].meta
        run.save(replace(meta, step=5), tensors_of(job.model, job.optimizer), 2)
    notes = Notes()
    with pytest.raises(NumericsError, match=r"0.weight of step-0+5\.safetensors holds 16"):
        go_on(run.path, reporter=notes)
    with pytest.raises(NumericsError, match=r"weight 0.weight \(16 of 16\)"):
        go_on(run.path, reporter=notes, allow_nonfinite=True)
    assert "weight 0.weight of step-00000005.safetensors holds 16 non-finite" in " ".join(
        notes.notes
    )


def test_a_run_in_use_cannot_be_resumed(tmp_path: Path) -> None:
    run = stopped_run(tmp_path)
    with RunDirectory(run), pytest.raises(RunError, match="in use by process"):
        go_on(run)
