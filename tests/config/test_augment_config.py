"""`augment:` in a config: checked with the rest, written back as it came, fit for the loss."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradcli.config.load import load
from gradcli.config.losses import LOSSES, LossSpec
from gradcli.errors import ErrorGroup

sys.path.append(str(Path(__file__).resolve().parents[1] / "data"))
from idx_bytes import images, labels, write

CONFIG = """
gradcli: 1
data: {name: idx, images: images, labels: labels, augment: AUGMENT}
model: [flatten, linear: 3]
loss: cross_entropy
optim: {name: sgd, lr: 0.1}
train: {batch: 2, steps: 3}
"""


@pytest.fixture
def config(tmp_path: Path) -> Callable[[str], Path]:
    def written(augment: str) -> Path:
        write(tmp_path, images=images(), labels=labels())
        path = tmp_path / "config.yaml"
        path.write_text(CONFIG.replace("AUGMENT", augment))
        return path

    return written


def test_transforms_are_written_back_as_they_came(config: Any, tmp_path: Path) -> None:
    loaded = load(config("[hflip, crop: 1, {rotate: {degrees: 5}}]"))
    wanted = ["hflip", {"crop": 1}, {"rotate": {"degrees": 5}}]
    assert loaded.resolved["data"]["augment"] == wanted
    again = tmp_path / "again.yaml"
    again.write_text(json.dumps(loaded.resolved))
    assert load(again).resolved == loaded.resolved


@pytest.mark.parametrize(
    ("augment", "message"),
    [
        ("hflip", "data.augment must be a list (each text or a map) or null, got text 'hflip'"),
        ("[hflop]", "data (idx): augment[0]: no transform is called 'hflop'"),
        ("[crop: {pad: 1}]", "data (idx): augment[0], crop: no key 'pad'; did you mean 'padding'?"),
        ("[crop: [1, 2]]", "augment[0], crop: padding must be a whole number, got [1, 2]"),
    ],
)
def test_mistakes_are_told_with_their_place(config: Any, augment: str, message: str) -> None:
    with pytest.raises(ErrorGroup) as caught:
        load(config(augment))
    [error] = caught.value.errors
    assert message in error.message
    assert str(error.location).endswith(("config.yaml:3:60", "config.yaml:3:51"))


def test_mixup_needs_a_loss_for_probabilities(config: Any, monkeypatch: Any) -> None:
    path = config("[mixup]")
    assert load(path).facts.mixed
    monkeypatch.setitem(LOSSES, "cross_entropy", lambda: LossSpec(("labels",), lambda: max))
    with pytest.raises(ErrorGroup) as caught:
        load(path)
    [error] = caught.value.errors
    assert "takes one class a sample, and mixup gives probabilities" in error.message
