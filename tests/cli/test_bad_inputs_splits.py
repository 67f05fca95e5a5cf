"""Keys of `split` that say how samples go to the splits, where that cannot be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from points import Ended
from refusals import gradcli, refused

__all__ = ["gradcli", "refused"]

Refused = Callable[..., Ended]

CONFIG = """\
gradcli: 1
name: rows
data: {name: idx, images: images, labels: labels, split: SPLIT}
model: [flatten, linear: $data.classes]
loss: cross_entropy
optim: {name: sgd, lr: 0.1}
train: {epochs: 1, batch: 4}
"""


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ("{train: 50%, val: 50%, group: patient}", "split: group names a column of a table"),
        ("{train: 50%, val: 50%, stratify: classes}", "split: stratify must be true or false"),
        ("{train: 50%, val: 50%, stratfy: true}", "did you mean 'stratify'?"),
    ],
)
def test_splits_by_what_is_not_there(refused: Refused, split: str, message: str) -> None:
    Path("images").write_bytes(bytes([0, 0, 8, 3, *[0, 0, 0, 2] * 3]) + bytes(8))
    Path("labels").write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 0, 1]))
    Path("rows.yaml").write_text(CONFIG.replace("SPLIT", split))
    refused(2, message, "train", "rows.yaml")
