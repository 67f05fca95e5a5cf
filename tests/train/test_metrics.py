"""Each metric against figures worked out by hand."""

from __future__ import annotations

import math

import pytest

from gradcli import engine
from gradcli.train.metrics import METRICS, better, higher_is_better


def figure(name: str, outputs: list[object], targets: list[object]) -> float:
    metric = METRICS[name]
    kind = engine.int64 if metric.targets == "labels" else engine.float32
    wanted = engine.tensor(targets, dtype=kind)
    total = metric.total(engine.tensor(outputs, dtype=engine.float32), wanted)
    return metric.finish(float(total.item()) / wanted.numel())


def test_accuracy_counts_the_largest_output() -> None:
    assert figure("accuracy", [[1, 2, 3], [3, 2, 1], [0, 5, 1]], [2, 0, 0]) == pytest.approx(2 / 3)


def test_accuracy_takes_classes_last_for_sequences() -> None:
    assert figure("accuracy", [[[1, 2], [2, 1]]], [[1, 1]]) == 0.5


def test_errors_of_values() -> None:
    outputs, targets = [[1.0], [2.0], [5.0]], [1.0, 4.0, 2.0]
    assert figure("mse", outputs, targets) == pytest.approx(13 / 3)
    assert figure("rmse", outputs, targets) == pytest.approx(math.sqrt(13 / 3))
    assert figure("mae", outputs, targets) == pytest.approx(5 / 3)


def test_accuracy_rises_and_the_rest_falls() -> None:
    assert [name for name in METRICS if higher_is_better(f"val.{name}")] == ["accuracy"]
    assert not higher_is_better("val.loss")


def test_nan_is_never_better() -> None:
    assert not better("val.loss", math.nan, None)
    assert better("val.loss", 1.0, None)
    assert better("val.loss", 0.9, 1.0)
    assert not better("val.loss", 0.95, 1.0, margin=0.1)
    assert better("val.accuracy", 0.9, 0.8)
    assert not better("val.accuracy", 0.9, 0.9)
