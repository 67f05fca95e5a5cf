"""What is fitted on the targets of a training split, and the scale that comes of it."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from gradcli import engine
from gradcli.data.facts import DataSpec, TargetFacts
from gradcli.data.npy_source import NpySource
from gradcli.data.samples import Samples, Windows
from gradcli.data.targets import PORTION, TargetScale, fit_targets

VALUES = NpySource(inputs="x.npy", targets="y.npy")


def fitted(split: Any, target: tuple[int, ...] = (), **facts: Any) -> TargetFacts:
    known = {"classes": None, "vocab": None, "labels": (), "sizes": {}, **facts}
    data: Any = SimpleNamespace(
        source=VALUES, splits={"train": split}, facts=DataSpec((1,), "float", target, **known)
    )
    return fit_targets(data)


def samples(targets: engine.Tensor) -> Samples:
    return Samples(engine.zeros(targets.shape[0], 1), targets)


@dataclass
class Batches:
    """A split of somebody's own, which has nothing but batches."""

    plain: Samples
    size: int

    def batch(self, indices: engine.Tensor) -> tuple[engine.Tensor, engine.Tensor]:
        return self.plain.batch(indices)


def test_means_and_deviations_are_those_of_the_population_by_column() -> None:
    rows = [[1e6 + 250.0 * ((7 * i) % 11), 0.001 * (i % 5), 4.0] for i in range(300)]
    split = samples(engine.tensor(rows))
    found = fitted(split, (3,))
    stored = list(zip(*split.targets.tolist(), strict=True))
    assert found.mean == pytest.approx([statistics.fmean(column) for column in stored], rel=1e-12)
    assert found.std[:2] == pytest.approx([statistics.pstdev(c) for c in stored[:2]], rel=1e-9)
    assert found.std[2] == 1.0  # never changes
    others = fitted(Batches(split, split.size), (3,))
    assert others.mean == pytest.approx(found.mean, rel=1e-12)
    assert others.std == pytest.approx(found.std, rel=1e-9)


def test_a_target_that_never_changes_has_the_scale_1() -> None:
    always = engine.full((1000,), 0.1, dtype=engine.float64)
    assert fitted(samples(always)).std == (1.0,)
    assert fitted(samples(always.to(engine.float32))).std == (1.0,)


def test_labels_are_counted_and_tokens_once_each() -> None:
    labels = engine.arange(PORTION + 10, dtype=engine.int64) % 3
    assert fitted(samples(labels), classes=4).counts == (21849, 21849, 21848, 0)
    text = Windows(engine.tensor([0, 1, 1, 2, 2, 2, 0], dtype=engine.int32), 2, 1)
    assert fitted(text, (2,), vocab=5).counts == (2, 2, 3, 0, 0)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), 3e38])
def test_what_has_no_finite_deviation_is_left_as_it_is(odd: float) -> None:
    targets = engine.tensor([[1.0], [odd], [-odd]], dtype=engine.float32)
    found = fitted(samples(targets), (1,))
    assert found == (TargetFacts((), (0.0,), (1.0,)) if odd != 3e38 else found)
    assert all(abs(value) < float("inf") for value in (*found.mean, *found.std))


def test_a_scale_goes_there_and_back() -> None:
    targets = engine.tensor([[630_000.0, 2.0], [880_000.0, 4.0], [380_000.0, 0.0]])
    scale = TargetScale((630_000.0, 2.0), (250_000.0, 2.0))
    scaled = scale.scaled(targets)
    assert scaled.tolist() == [[0, 0], [1, 1], [-1, -1]]
    assert scale.restored(scaled).tolist() == targets.tolist()
    assert scale.restored(scaled.reshape(3, 2, 1)).shape == (3, 2)
    assert scale.restored(scaled.to(engine.bfloat16)).dtype is engine.float32
    one = TargetScale((10.0,), (4.0,))
    assert one.scaled(engine.tensor([14.0, 6.0])).tolist() == [1, -1]
    assert one.restored(engine.tensor([1.0, -1.0])).tolist() == [[14], [6]]
