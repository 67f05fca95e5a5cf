"""What a schedule has seen of the evaluations is kept in checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny import Silent, go_on, only_run, records, tiny_job, train

from gradcli.engine.optim.schedule import PlateauSchedule
from gradcli.train import checkpoint
from gradcli.train.directory import find_checkpoint


class Killed(BaseException):
    """Stands for a kill: nothing below catches it."""


class KilledAt(Silent):
    """Ends the run after a step."""

    def __init__(self, last: int) -> None:
        self.last = last

    def on_step(self, step: int, loss: float, rate: float) -> None:
        if step == self.last:
            raise Killed


@pytest.mark.parametrize("step", [3, 6, 9, 14])
def test_a_plateau_goes_on_where_it_stood(tmp_path, step) -> None:
    settings = {"checkpoint_every": 2, "eval_every": 3}

    def job():
        # A figure must fall by a tenth to count, so that the rate falls at nearly each evaluation.
        plateau = PlateauSchedule(
            total=18, metric="val.loss", rising=False, factor=0.5, patience=0, threshold=0.1
        )
        return tiny_job(settings=settings, schedule=plateau)

    whole = train(tmp_path / "a", job())
    with pytest.raises(Killed):
        train(tmp_path / "b", job(), reporter=KilledAt(step))
    run = only_run(tmp_path / "b")
    assert go_on(run, job()).weights_sha256 == whole.weights_sha256
    rates = [one["lr"] for one in records(run) if one["event"] == "step"]
    assert rates == [one["lr"] for one in records(whole.run) if one["event"] == "step"]
    assert len(set(rates)) >= 3


def test_a_checkpoint_from_before_schedules_had_a_state_is_read(tmp_path, monkeypatch) -> None:
    dump = checkpoint._dump

    def older(meta):
        values = json.loads(dump(meta))
        del values["schedule"]
        return json.dumps(values)

    monkeypatch.setattr(checkpoint, "_dump", older)
    run = train(tmp_path).run
    assert find_checkpoint(Path(run), "last")[1].meta.schedule == {}
