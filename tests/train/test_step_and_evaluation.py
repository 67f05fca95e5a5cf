"""A step, an evaluation and the length of a training, without a run around them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from tiny import TinyData, TinySplit, tiny_job, train

from gradcli import engine
from gradcli.config.losses import cross_entropy
from gradcli.engine import nn
from gradcli.train.evaluate import Evaluation
from gradcli.train.job import TrainSettings, steps_per_epoch, total_steps
from gradcli.train.state import weights_sha256
from gradcli.train.step import OneStep


def test_micro_batches_give_the_gradients_of_the_batch(tmp_path: Path) -> None:
    figures = []
    for micro in (None, 8, 3, 1):
        job = tiny_job(settings={"micro_batch": micro, "steps": 5, "epochs": None})
        job.model[1].p = 0.0
        figures.append(train(tmp_path, job).metrics["val.loss"])
    assert figures[1] == figures[0]
    assert figures[2:] == pytest.approx([figures[0]] * 2, rel=1e-5)


def test_micro_batches_of_a_loss_with_class_weights_are_weighed_by_their_labels() -> None:
    """8 x 1 = 2 x 4 = 5 + 3."""
    found = []
    for micro in (None, 1, 4, 5):
        job = tiny_job(settings={"micro_batch": micro})
        loss = cross_entropy(weight=(0.2, 3.0))
        job = replace(job, loss=loss.make(), total_weight=loss.total_weight)
        job.model[1].p = 0.0
        step = OneStep(job, job.dataset.splits["train"])
        value = step.gradients(engine.arange(8), engine.get_rng_state())
        grads = [p.grad.reshape(-1).tolist() for p in job.model.parameters() if p.grad is not None]
        found.append([value.item(), *chain(*grads)])
    for parts in found[1:]:
        assert parts == pytest.approx(found[0], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("batch", [1, 3, 7, 20, 100])
def test_figures_do_not_depend_on_the_batch(batch: int) -> None:
    job = tiny_job(settings={"batch": batch})
    figures = Evaluation(job, job.dataset.splits["val"], "val").run()
    other = tiny_job(settings={"batch": 20})
    whole = Evaluation(other, job.dataset.splits["val"], "val").run()
    assert figures["val.accuracy"] == whole["val.accuracy"]
    assert figures["val.loss"] == pytest.approx(whole["val.loss"], rel=1e-6)


def test_an_evaluation_leaves_the_model_training() -> None:
    job = tiny_job()
    job.model.train()
    Evaluation(job, job.dataset.splits["val"], "val").run()
    assert job.model.training


@pytest.mark.parametrize(
    ("settings", "samples", "per_epoch", "total"),
    [
        (TrainSettings(batch=8, epochs=3), 42, 6, 18),
        (TrainSettings(batch=8, epochs=3, drop_last=True), 42, 5, 15),
        (TrainSettings(batch=7, epochs=2), 42, 6, 12),
        (TrainSettings(batch=50, epochs=2), 42, 1, 2),
        (TrainSettings(batch=8, steps=9), 42, 6, 9),
        (TrainSettings(batch=8, epochs=0), 42, 6, 0),
    ],
)
def test_lengths(settings: TrainSettings, samples: int, per_epoch: int, total: int) -> None:
    assert steps_per_epoch(settings, samples) == per_epoch
    assert total_steps(settings, samples) == total


def test_every_sample_comes_once_an_epoch(tmp_path: Path) -> None:
    seen: list[list[int]] = []
    job = tiny_job(settings={"epochs": 2}, dataset=TinyData({"train": TinySplit(42, 1)}))
    split = job.dataset.splits["train"]
    split.on_batch = seen.append
    train(tmp_path, job)
    batches = seen[1:]  # the first is the preflight's
    assert [len(batch) for batch in batches] == [8, 8, 8, 8, 8, 2] * 2
    epochs = [list(chain(*batches[:6])), list(chain(*batches[6:]))]
    assert [sorted(epoch) for epoch in epochs] == [list(range(42))] * 2
    assert epochs[0] != epochs[1]


def test_the_hash_sees_names_shapes_and_values() -> None:
    hashes = {
        weights_sha256(model)
        for model in (
            nn.Sequential(nn.Linear(2, 3)),
            nn.Sequential(nn.ReLU(), nn.Linear(2, 3)),
            nn.Sequential(nn.Linear(3, 2)),
        )
    }
    assert len(hashes) == 3
    assert weights_sha256(tiny_job().model) == weights_sha256(tiny_job().model)
