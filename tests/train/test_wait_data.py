"""`wait_data`: the share of time in which steps waited for their samples."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny import TinyData, TinySplit, tiny_job, train

from gradcli import engine
from gradcli.data.samples import Samples
from gradcli.train.job import Job
from gradcli.train.order import Order
from gradcli.train.pace import Pace
from gradcli.train.step import TrainingStep


class Clock:
    """A clock that only moves where it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Slow(TinySplit):
    """Points that take three seconds to come."""

    def __init__(self, size: int, seed: int, clock: Clock) -> None:
        super().__init__(size, seed)
        self._clock = clock

    def batch(self, indices: Any) -> tuple[Any, Any]:
        self._clock.now += 3.0
        return super().batch(indices)


def slow_job(clock: Clock) -> Job:
    """Each step takes four seconds, of which it waits three."""
    job = tiny_job(
        dataset=TinyData({"train": Slow(40, 1, clock)}),  # type: ignore[arg-type]
        settings={"capture": False},
    )
    plain = job.loss

    def loss(outputs: Any, targets: Any) -> Any:
        clock.now += 1.0
        return plain(outputs, targets)

    return replace(job, loss=loss)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in ("gradcli.train.pace", "gradcli.data.waiting"):
        monkeypatch.setattr(f"{module}.time.perf_counter", clock)
    return clock


def test_a_slow_source_shows(clock: Clock) -> None:
    job = slow_job(clock)
    split = job.dataset.splits["train"]
    step, order = TrainingStep(job, split, pytest.fail), Order(1, 8, split.size, 5)
    pace = Pace(step)
    for done in (0, 1):
        clock.now += 50.0  # an evaluation
        pace.begin()
        step.run(done + 1, order.rows(done, 1))
        pace.count(1, 8)
        pace.end()
    assert pace.take() == {"samples_per_second": 2.0, "wait_data": 0.75}
    pace.begin()
    clock.now += 5.0
    pace.count(1, 8)
    assert pace.take()["wait_data"] == 0.0  # of the steps since


def lines(run: str) -> list[dict[str, Any]]:
    records = map(json.loads, (Path(run) / "log.jsonl").read_text().splitlines())
    return [one for one in records if one["event"] == "step"]


def test_every_line_with_a_pace_has_the_share(tmp_path: Path) -> None:
    points = 20_000  # more than is always near
    engine.manual_seed(3)
    inputs = engine.rand(points, 2)
    split: Any = Samples(inputs, (inputs[:, 0] > 0.5).to(engine.int64))
    job = tiny_job(dataset=TinyData({"train": split}), settings={"steps": 12, "epochs": None})
    log = lines(train(tmp_path, job).run)
    shares = [one["wait_data"] for one in log if "samples_per_second" in one]
    assert len(shares) == 10  # but for the two steps that were recorded
    assert all(0 < share <= 1 for share in shares)
