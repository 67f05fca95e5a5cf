"""`train.sampler` against the targets and the loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradcli.config.load import load
from gradcli.errors import ErrorGroup

MNIST = Path(__file__).parents[2] / "configs" / "mnist.yaml"
NUMBERS = """\
gradcli: 1
data: {name: csv, file: t.csv, target: y, task: regression, numeric: [x]}
model: [linear: 1]
loss: mse
optim: {name: sgd, lr: 0.1}
train: {epochs: 1, batch: 4, sampler: balanced}
"""


def test_classes_that_the_loss_weighs_too_are_warned_of() -> None:
    weights = "loss={name: cross_entropy, weight: [1, 1, 1, 1, 1, 1, 1, 1, 1, 2]}"
    config = load(MNIST, ["train.sampler=balanced", weights])
    assert [warning.code for warning in config.warnings] == ["W115"]
    assert not load(MNIST, ["train.sampler=balanced"]).warnings


def test_targets_that_are_no_classes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y\n" + "1,2\n3,4\n" * 20)
    (tmp_path / "t.yaml").write_text(NUMBERS)
    with pytest.raises(ErrorGroup) as caught:
        load(tmp_path / "t.yaml")
    assert "the targets here are no classes of samples" in str(caught.value.errors[0])
