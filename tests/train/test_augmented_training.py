"""A training on changed images: captured or not, resumed or not, it ends in the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny import Silent, TinyData, go_on, tiny_job, train

from gradcli import engine
from gradcli.config.losses import cross_entropy
from gradcli.data.augment import transforms
from gradcli.data.augmented import Augmented
from gradcli.data.samples import Samples
from gradcli.engine import nn, optim
from gradcli.engine.device import cpu
from gradcli.errors import NumericsError
from gradcli.train.evaluate import Evaluation

CHAIN = [{"crop": 1}, "hflip", {"rotate": 20}, {"cutout": 2}, {"mixup": 0.3}]


def job(chain: list[Any] = CHAIN, **settings: Any) -> Any:
    numbers = engine.arange(42 * 2 * 5 * 6) * 31 % 256
    plain = Samples(
        numbers.to(engine.uint8).reshape(42, 2, 5, 6), engine.arange(42) % 3, 255.0, 0.5, 0.3
    )
    split = Augmented(plain, transforms(chain), 3) if chain else plain
    engine.manual_seed(5)
    model = nn.Sequential(nn.Flatten(), nn.Linear(60, 3))
    return replace(
        tiny_job(settings=settings),
        model=model,
        loss=cross_entropy().make(),
        optimizer=optim.Adam(model.parameters(), lr=0.05),
        dataset=TinyData({"train": split, "val": plain.part(range(12))}),
    )


class Quiet(Silent):
    """Refuses what a step that cannot be captured would say."""

    def note(self, text: str) -> None:
        raise AssertionError(text)


def test_captured_steps_are_the_eager_ones_with_any_threads(tmp_path: Path) -> None:
    eager = train(tmp_path, job(capture=False)).weights_sha256
    before = cpu.threads()
    try:
        for threads in (1, 2, 3):
            cpu.set_threads(threads)
            made = train(tmp_path, job(), reporter=Quiet())
            assert made.weights_sha256 == eager
    finally:
        cpu.set_threads(before)
    assert train(tmp_path, job([])).weights_sha256 != eager


@pytest.mark.parametrize("step", [1, 4, 6, 9])
def test_a_resumed_training_sees_the_same_images(tmp_path: Path, step: int) -> None:
    whole = train(tmp_path, job())
    run = train(tmp_path, job(), max_steps=step).run
    assert go_on(run, job()).weights_sha256 == whole.weights_sha256


def test_micro_batches_see_the_images_of_the_batch(tmp_path: Path) -> None:
    figures = [train(tmp_path, job(micro_batch=m)).metrics["val.loss"] for m in (None, 3)]
    assert figures[1] == pytest.approx(figures[0], rel=1e-4)


def test_what_is_measured_is_not_changed() -> None:
    plain = Evaluation(job([]), job([]).dataset.splits["train"], "train").run()
    assert Evaluation(job(), job().dataset.splits["train"], "train").run() == plain


def test_a_loss_that_is_no_number_is_looked_for_in_the_changed_batch(tmp_path: Path) -> None:
    broken = job(["hflip"])
    images = engine.zeros(42, 2, 5, 6)
    images[7, 0, 0, 0] = float("nan")
    split = Augmented(Samples(images, engine.arange(42) % 3), transforms(["hflip"]), 3)
    broken.dataset.splits["train"] = split
    with pytest.raises(NumericsError, match=r"the inputs of the batch have 1 of 480 .* samples 7 "):
        train(tmp_path, broken)
