"""What lines of the log say of steps beside their loss: the gradients' norm, and the pace."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tiny import TinyData, TinySplit, go_on, tiny_job, train

from gradcli import engine
from gradcli.train.gradient_norm import GradientNorm, norm_of
from gradcli.train.job import Job
from gradcli.train.order import Order
from gradcli.train.pace import Pace
from gradcli.train.step import TrainingStep

CLIPPED: list[dict[str, Any]] = [
    {"clip": 1e-3},
    {"clip_value": 1e-3},
    {"clip": 1e-3, "clip_value": 1e-4},
    {"on_nonfinite": "skip"},
    {"clip_value": 1e-3, "on_nonfinite": "skip"},
]


def lines(run: str) -> list[dict[str, Any]]:
    """The log's lines on steps."""
    records = map(json.loads, (Path(run) / "log.jsonl").read_text().splitlines())
    return [one for one in records if one["event"] == "step"]


def norms(runs: Path, **settings: Any) -> list[float]:
    result = train(runs, captured_job(epochs=1, **settings))
    return [one["grad_norm"] for one in lines(result.run)]


class Stored(TinySplit):
    """The same points where a captured step finds them."""

    def __init__(self, size: int, seed: int) -> None:
        super().__init__(size, seed)
        self.points = super().batch(engine.arange(size))

    def batch(self, indices: Any) -> tuple[Any, Any]:
        inputs, targets = (one.index_select(0, indices) for one in self.points)
        return inputs, targets


def captured_job(**settings: Any) -> Job:
    """Six steps an epoch, of which the last is smaller."""
    splits: dict[str, TinySplit] = {"train": Stored(42, 1), "val": TinySplit(20, 2)}
    return tiny_job(dataset=TinyData(splits), settings=settings)


def steps_of(job: Job) -> tuple[TrainingStep, Order]:
    split = job.dataset.splits["train"]
    return TrainingStep(job, split, pytest.fail), Order(1, 8, split.size, 6)


def test_each_line_has_the_norm_of_all_gradients(tmp_path: Path) -> None:
    job = captured_job()
    step, order = steps_of(job)
    before = {}
    for done in range(5):
        step.run(done + 1, order.rows(done, 1))
        grads = [p.grad for p in job.model.parameters()]
        before[done + 1] = math.sqrt(sum((g.double() ** 2).sum().item() for g in grads))
        assert step.norm_at(done + 1) == pytest.approx(before[done + 1], rel=1e-12)
    assert step.norms == pytest.approx(before)
    log = {one["step"]: one["grad_norm"] for one in lines(train(tmp_path, captured_job()).run)}
    assert list(log) == list(range(1, 19)) and all(norm > 0 for norm in log.values())


@pytest.mark.parametrize("settings", CLIPPED, ids=str)
@pytest.mark.parametrize("capture", [True, False])
def test_it_is_that_before_clipping(
    tmp_path: Path, settings: dict[str, Any], capture: bool
) -> None:
    plain, clipped = (norms(tmp_path, capture=capture, **one) for one in ({}, settings))
    assert clipped[0] == plain[0]
    assert min(clipped) > 1e-2


@pytest.mark.parametrize("change", [{"micro_batch": 3}, {"precision": "bf16"}, {"capture": False}])
def test_it_is_that_of_the_whole_batch_however_the_step_is_made(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    plain, other = norms(tmp_path), norms(tmp_path, **change)
    exact = change == {"capture": False}
    # bfloat16 keeps eight bits of a number; dropout draws other numbers for other parts.
    assert other == (plain if exact else pytest.approx(plain, rel=1.5))
    assert len(other) == 6 and min(other) > 0


def test_looking_changes_no_bit_of_the_weights(tmp_path: Path) -> None:
    sha256 = {
        train(tmp_path, captured_job(log_every=every, drop_last=True)).weights_sha256
        for every in (1, 4, 1000)
    }
    assert len(sha256) == 1


def test_a_norm_may_be_infinite() -> None:
    job = captured_job()
    step, order = steps_of(job)
    step.run(1, order.rows(0, 1))
    next(iter(job.model.parameters())).grad[0, 0] = math.inf  # type: ignore[index]
    assert step.norm() == math.inf


def test_the_program_of_the_norm_is_learnt_once_for_each_of_the_steps() -> None:
    job = captured_job()
    step, order = steps_of(job)
    norm = GradientNorm(job.model.parameters())
    for done in range(18):
        step.run(done + 1, order.rows(done, 1))
        grads = [p.leaf.grad for p in job.model.parameters() if p.leaf and p.leaf.grad]
        assert norm(lambda: step.captured.programs) == norm_of(grads).item()
    assert [len(one.programs) for _, one in norm._captured] == [1, 1]  # the last is smaller


def test_a_model_without_gradients_has_a_norm_of_0() -> None:
    assert GradientNorm([])() == 0.0


def test_samples_per_second_are_said_from_the_first_replayed_step_on(tmp_path: Path) -> None:
    log = lines(train(tmp_path, captured_job()).run)
    steps = [one["step"] for one in log if "samples_per_second" in one]
    # Steps 1 and 2 are learnt from, and so are the first two smaller batches, 6 and 12.
    assert steps == [3, 4, 5, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 18]
    assert all(one["samples_per_second"] > 0 for one in log if one["step"] in steps)


def test_steps_that_stay_eager_count_from_the_first_on(tmp_path: Path) -> None:
    log = lines(train(tmp_path, tiny_job(settings={"capture": False})).run)
    assert all(one["samples_per_second"] > 0 for one in log)


def test_a_resumed_run_counts_from_where_it_goes_on(tmp_path: Path) -> None:
    first = train(tmp_path, captured_job(), max_steps=7)
    log = lines(go_on(first.run, captured_job()).run)
    assert [one["step"] for one in log] == list(range(1, 19))
    assert all("grad_norm" in one for one in log)
    assert "samples_per_second" not in log[7] and "samples_per_second" in log[9]


def test_what_lies_between_steps_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 2.0, 100.0, 102.0, 200.0, 204.0])
    job = tiny_job(settings={"capture": False})
    pace = Pace(steps_of(job)[0])
    monkeypatch.setattr("gradcli.train.pace.time.perf_counter", lambda: next(clock))
    for steps in (3, 5):
        pace.begin()
        pace.count(steps, 8)
        if steps == 3:
            pace.end()
    assert pace.take() == {"samples_per_second": 16.0, "wait_data": 0.0}  # 64 in 4 seconds
    pace.begin()
    assert pace.take() == {}
