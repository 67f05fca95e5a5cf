"""Parts of a batch: how it is cut, and that gradients are added along one tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tiny import tiny_job

from gradcli import engine
from gradcli.engine import nn
from gradcli.train.job import Job
from gradcli.train.parts import cut
from gradcli.train.step import OneStep

Grads = list[Any]
SEED = 5


def job_of(micro: int | None) -> Job:
    job = tiny_job(settings={"micro_batch": micro, "seed": SEED})
    job.model[1].p = 0.0
    return job


def gradients_of(job: Job, samples: int) -> Grads:
    step = OneStep(job, job.dataset.splits["train"])
    engine.manual_seed(SEED)
    step.gradients(engine.arange(samples), engine.get_rng_state())
    return [p.grad.clone() for p in job.model.parameters()]


def alone(job: Job, low: int, high: int, samples: int) -> Grads:
    """The gradients of one part alone, weighed by its share."""
    job.optimizer.zero_grad()
    inputs, targets = job.dataset.splits["train"].batch(engine.arange(low, high))
    (job.loss(job.model(inputs), targets) * ((high - low) / samples)).backward()
    return [p.grad.clone() for p in job.model.parameters()]


def added(*grads: Grads) -> Grads:
    return [sum(column[1:], column[0]) for column in zip(*grads, strict=True)]


def same(left: Grads, right: Grads) -> bool:
    return all(a.tolist() == b.tolist() for a, b in zip(left, right, strict=True))


def test_a_batch_is_cut_in_parts_of_one_size_and_a_smaller_last_one() -> None:
    indices = engine.arange(8)
    assert [part.tolist() for part in cut(indices, 3)] == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert [part.tolist() for part in cut(indices, None)] == [list(range(8))]


@pytest.mark.parametrize("micro", [4, 5, 3])
def test_two_and_three_parts_are_added_one_to_the_next(micro: int) -> None:
    """So it was before there was a tree: backward added each part to what was there."""
    job = job_of(micro)
    parts = [(low, min(low + micro, 8)) for low in range(0, 8, micro)]
    assert len(parts) in (2, 3)
    assert same(gradients_of(job, 8), added(*(alone(job, *part, 8) for part in parts)))


TREES: dict[int, Callable[[list[Grads]], Grads]] = {
    4: lambda g: added(added(g[0], g[1]), added(g[2], g[3])),
    5: lambda g: added(added(added(g[0], g[1]), added(g[2], g[3])), g[4]),
    7: lambda g: added(added(added(g[0], g[1]), added(g[2], g[3])), added(added(g[4], g[5]), g[6])),
}


@pytest.mark.parametrize("count", TREES)
def test_more_parts_are_added_along_a_tree(count: int) -> None:
    samples = 4 * count
    job = job_of(4)
    parts = [alone(job, low, low + 4, samples) for low in range(0, samples, 4)]
    found = gradients_of(job, samples)
    assert same(found, TREES[count](parts))
    assert not same(found, added(*parts))  # one to the next gives other bits


def test_a_weight_that_some_parts_do_not_use_has_the_sum_of_the_others() -> None:
    """Of 5 parts the second and those of the right half give none."""
    used = nn.Parameter(engine.ones(3))
    step = OneStep(job_of(2), None)  # type: ignore[arg-type]
    sums = type(step._sums)([used])

    def backward(part: int) -> None:
        if part in (0, 4):
            (used * (part + 1.0)).sum().backward()

    sums.add_up(0, 5, backward)
    assert used.grad is not None
    assert used.grad.tolist() == [6.0, 6.0, 6.0]


def test_running_statistics_take_those_of_all_parts_in_order() -> None:
    engine.manual_seed(SEED)
    model = nn.Sequential(nn.BatchNorm1d(2, momentum=0.5), nn.Linear(2, 2))
    job = tiny_job(model=model, settings={"micro_batch": 4})
    gradients_of(job, 8)
    means = [job.dataset.splits["train"].batch(engine.arange(i, i + 4))[0].mean(0) for i in (0, 4)]
    expected = (means[0] * 0.5 + means[1]) * 0.5
    assert model[0].running_mean.tolist() == pytest.approx(expected.tolist(), rel=1e-5)
    assert model[0].num_batches_tracked.item() == 2


@pytest.mark.parametrize("micro", [1, 2, 3, 4])
def test_gradients_of_parts_are_those_of_the_whole_batch_but_for_rounding(micro: int) -> None:
    whole = [value for one in gradients_of(job_of(None), 24) for value in one.reshape(-1).tolist()]
    parts = [value for one in gradients_of(job_of(micro), 24) for value in one.reshape(-1).tolist()]
    largest = max(map(abs, whole))
    assert max(abs(a - b) for a, b in zip(whole, parts, strict=True)) <= 1e-6 * largest
