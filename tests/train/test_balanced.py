"""`train.sampler: balanced`: classes come equally often, by seed and epoch alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rank_threads import ThreadGroup, on_ranks
from test_augmented_training import CHAIN, Quiet
from test_augmented_training import job as augmented_job
from tiny import TinyData, go_on, train

from gradcli import engine
from gradcli.data.augment import transforms
from gradcli.data.augmented import Augmented, epoch_state
from gradcli.data.samples import Samples
from gradcli.engine import distributed
from gradcli.engine.distributed import ALONE
from gradcli.train.balanced import Balanced
from gradcli.train.order import Order
from gradcli.train.step import OneStep

LABELS = [0] * 30 + [2] * 9 + [3] * 3  # no sample of class 1


def job(chain: list[Any] = CHAIN, **settings: Any) -> Any:
    made = augmented_job([], sampler="balanced", **settings)
    plain = replace(
        made.dataset.splits["train"], targets=engine.tensor([label % 3 for label in LABELS])
    )
    split = Augmented(plain, transforms(chain), 3) if chain else plain
    return replace(made, dataset=TinyData({"train": split, "val": plain.part(range(12))}))


def test_classes_are_drawn_equally_often_and_their_samples_too() -> None:
    balanced = Balanced(engine.tensor(LABELS))
    drawn = [
        sample % 42 for epoch in range(300) for sample in balanced.order(7, epoch, 42).tolist()
    ]
    classes = Counter(LABELS[sample] for sample in drawn)
    assert set(classes) == {0, 2, 3}
    assert all(abs(count - 300 * 14) < 250 for count in classes.values())
    rare = Counter(sample for sample in drawn if LABELS[sample] == 3)
    assert all(abs(count - 1400) < 150 for count in rare.values())


def test_a_drawing_counts_how_often_its_sample_came_before() -> None:
    drawings = Balanced(engine.tensor(LABELS)).order(1, 0, 42).tolist()
    assert len(set(drawings)) == len(drawings) == 42
    before: Counter[int] = Counter()
    for drawing in drawings:
        times, sample = divmod(drawing, 42)
        assert times == before[sample]
        before[sample] += 1
    assert max(before.values()) > 2


def test_the_order_is_a_function_of_seed_and_epoch() -> None:
    balanced = Balanced(engine.tensor(LABELS))
    one = Order(3, 8, 42, 5, balanced.order)
    other = Order(3, 8, 42, 5, Balanced(engine.tensor(LABELS)).order)
    later = one.rows(5, 2).tolist()
    assert other.rows(6, 1).tolist() == later[1:]
    assert one.rows(0, 2).tolist() != later


def test_a_sample_that_comes_again_is_changed_anew() -> None:
    plain = Samples(engine.arange(42 * 36).reshape(42, 1, 6, 6).to(engine.uint8), engine.arange(42))
    split = Augmented(plain, transforms([{"rotate": 90}]), 42)
    state = epoch_state(1, engine.tensor([0]))
    sample = engine.tensor([5, 5])
    first, again = split.augment(sample, state, draws=engine.tensor([5, 5 + 42]))[0].tolist()
    assert first != again
    assert first == split.augment(sample, state)[0].tolist()[0]


def test_what_is_mixed_in_is_drawn_from_classes_alike() -> None:
    made = job([{"mixup": 1.0}])
    split = made.dataset.splits["train"]
    step, balanced = OneStep(made, split), Balanced.of(split)
    shares = engine.zeros(3)
    for epoch in range(60):
        state = engine.tensor([1, 1 + epoch * 5, 0])
        shares = shares + step.batch(balanced.order(1, epoch, 42), state)[1].mean(dim=0) / 60
    assert shares.tolist() == pytest.approx([0.5, 0, 0.5], abs=0.03)


def test_captured_and_resumed_steps_are_the_eager_ones(tmp_path: Path) -> None:
    eager = train(tmp_path, job(capture=False)).weights_sha256
    whole = train(tmp_path, job(), reporter=Quiet())
    assert whole.weights_sha256 == eager
    for step in (1, 4, 7):
        run = train(tmp_path, job(), max_steps=step).run
        assert go_on(run, job()).weights_sha256 == eager
    assert train(tmp_path, augmented_job(CHAIN)).weights_sha256 != eager


@pytest.mark.parametrize("size", [2, 3])
def test_ranks_make_the_gradients_of_one(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each with the same weights: made before there are threads, which share what draws them.
    jobs = [job([], micro_batch=4, batch=16) for _ in range(size + 1)]

    def gradients(group: Any, made: Any) -> list[Any]:
        split = made.dataset.splits["train"]
        step = OneStep(made, split, group)
        drawings = Balanced.of(split).order(1, 0, 42)[:16]
        step.gradients(drawings, engine.tensor([1, 1, 0]))
        return [p.grad.tolist() for p in made.model.parameters() if p.grad is not None]

    expected = gradients(ALONE, jobs[size])

    def task(group: ThreadGroup) -> list[Any]:
        return gradients(group, jobs[group.rank])

    monkeypatch.setattr(distributed, "group", lambda: ALONE)
    assert on_ranks(size, task, timeout=20) == [expected] * size
