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
