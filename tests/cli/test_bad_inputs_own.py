"""Row 19, own code that a config names: `gradcli train` refuses it, with one message."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from points import Ended
from refusals import gradcli, refused

__all__ = ["gradcli", "refused"]

LOSS = """\
import gradcli
from gradcli.engine import nn


@gradcli.loss
class Own(nn.Module):
    def forward(self, outputs, targets):
        return nn.functional.cross_entropy(outputs, targets)
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("outputs, targets):", "outputs):", "Own must have forward(self, outputs, targets)"),
        ("targets)\n", "targets).item()\n", "it gave float; mean() makes one number of many"),
        ("targets)\n", "targets, reduction='none')\n", "it gave float32 of shape (2,)"),
        ("(outputs, t", "(outputs.detach(), t", "Own has no gradient with respect to the outputs"),
        ("nn.functional.", "self.", "own.py:8: AttributeError"),
        ("class Own", "class Mse", "the name 'mse' is taken; rename the class"),
        (
            "    def f",
            "    targets = 'values'\n\n    def f",
            'write targets = "labels" in its class',
        ),
    ],
)
def test_a_wrong_own_loss_is_refused(
    refused: Callable[..., Ended],
    config_file: Callable[..., Path],
    tmp_path: Path,
    old: str,
    new: str,
    message: str,
) -> None:
    assert LOSS.count(old) >= 1
    (tmp_path / "own.py").write_text(new.join(LOSS.rsplit(old, 1)))
    path = config_file(("loss: cross_entropy", "code: own.py\nloss: own"))
    if "class Mse" in new:
        path = config_file(("loss: cross_entropy", "code: own.py\nloss: mse"))
    refused(2, message, "train", path)


METRIC = """\
import gradcli


@gradcli.metric
class Own:
    direction = "higher"

    def state(self, outputs, targets):
        return {"near": (outputs.argmax(1) == targets).sum(), "count": targets.numel()}

    def merge(self, states):
        return {name: sum(state[name] for state in states) for name in states[0]}

    def finish(self, state):
        return state["near"] / state["count"]
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def merge(self, ", "def join(self, ", "is marked as a metric and has no merge(self, st"),
        ("(self, state):", "(self):", "Own must have finish(self, state)"),
        ('"higher"', '"up"', "must have direction = 'higher', 'lower' or 'neither', got 'up'"),
        ("targets.numel()", "None", "Own.state gives None as 'count'"),
        ('return state["near"] / ', "return None, ", "Own.finish must give one number, got "),
        ("argmax(1)", "argmax(3)", "own.py:9: argmax"),
        ("class Own", "class Accuracy", "the name 'accuracy' is taken; rename the class"),
        (
            "\n    def state",
            "    name: str = ''\n\n    def state",
            "has a field 'name', and in YAML",
        ),
        ('"higher"', '"neither"', "train.best: metric 'own' is better neither higher nor lower"),
    ],
)
def test_a_wrong_own_metric_is_refused(
    refused: Callable[..., Ended],
    config_file: Callable[..., Path],
    tmp_path: Path,
    old: str,
    new: str,
    message: str,
) -> None:
    assert old in METRIC
    (tmp_path / "own.py").write_text(METRIC.replace(old, new))
    changes = ("metrics: [accuracy]", "code: own.py\nmetrics: [own]")
    best = ("best: val.accuracy", "best: val.own"), ("test.accuracy", "val.own")
    path = config_file(changes, *best)
    refused(2, message, "train", path)
