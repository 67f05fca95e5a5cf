"""Models of sequences and of lines are trained on a time series, resumed and asked."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from points import Ended
from refusals import gradcli

__all__ = ["gradcli"]

CONFIG = """\
gradcli: 1
name: power
data: {name: csv, file: power.csv, target: load, task: regression, window: 24, LAYOUT}
model: [LAYERS, linear: 1]
loss: mse
metrics: [mae]
optim: {name: adam, lr: 0.01}
train: {epochs: 6, batch: 32, seed: 1}
expect: {val.mae: "<= 4"}
"""


@pytest.mark.parametrize(
    ("layout", "layers"),
    [
        ("channels: last", "lstm: {out: 16, last: true}"),
        ("channels: last", "gru: {out: 16, last: true}"),
        ("channels: first", "conv1d: {out: 8, kernel: 3}, relu, flatten"),
    ],
    ids=["lstm", "gru", "conv1d"],
)
def test_a_model_learns_what_comes_next(
    gradcli: Callable[..., Ended], layout: str, layers: str
) -> None:
    waves = [(math.sin(hour / 24 * 2 * math.pi), hour) for hour in range(400)]
    rows = [f"day {hour},{10 + 5 * wave:.3f},{100 - 20 * wave:.3f}" for wave, hour in waves]
    Path("power.csv").write_text("\n".join(["time,temp,load", *rows]) + "\n")
    Path("power.yaml").write_text(CONFIG.replace("LAYOUT", layout).replace("LAYERS", layers))
    assert gradcli("train", "power.yaml").code == 0
    [run] = Path("runs/power").glob("2*")
    assert json.loads((run / "evaluation.json").read_text())["outputs"] == ["load"]
    answers = gradcli("predict", "power", "power.csv")
    assert answers.code == 0
    first, *_, last = answers.out.strip().splitlines()
    assert (first.split()[1], last.split()[1], len(answers.out.splitlines())) == ("23", "399", 377)
    assert gradcli("eval", "power", "--data", "power.csv").code == 0
