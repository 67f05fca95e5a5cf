"""Weights that no gradient reaches, and outputs that the loss never sees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from trusting import load

from gradcli import engine
from gradcli.errors import GradcliError

Write = Callable[..., Path]
LAYERS = "  - flatten\n  - linear: 16\n  - relu\n"
CODE = '''\
import gradcli
from gradcli import engine
from gradcli.engine import Tensor, nn
from gradcli.engine.nn import functional as F


@gradcli.layer
class Sign(nn.Module):
    """1 where the input is positive, otherwise 0."""

    def __init__(self, sample: tuple[int, ...]) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return (x > 0).to(engine.float32)


@gradcli.layer
class Through(nn.Module):
    """The input, times a weight of its own; another one lies idle."""

    def __init__(self, sample: tuple[int, ...]) -> None:
        super().__init__()
        self.used = nn.Parameter(engine.ones(1))
        self.idle = nn.Parameter(engine.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.used


@gradcli.layer
class Looks(nn.Module):
    """The input, cut from what comes before, once its sum was looked at."""

    def __init__(self, sample: tuple[int, ...]) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x.detach() * (1 if x.sum().item() else 2)


@gradcli.loss
class Part(nn.Module):
    """Cross-entropy of the first classes alone."""

    def __init__(self, classes: int = 8) -> None:
        super().__init__()
        self.classes = classes

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(outputs[:, : self.classes], targets % self.classes)
'''


def warned(config_file: Write, layers: str, *changes: tuple[str, str]) -> list[GradcliError]:
    """The warnings of the base config with own code, and these layers before its last `linear`."""
    lines = "".join(f"  - {line}\n" for line in layers.split("\n"))
    path = config_file((LAYERS, lines), ("loss:", "code: mine.py\nloss:"), *changes)
    (path.parent / "mine.py").write_text(CODE)
    state = engine.get_rng_state().tolist()
    warnings = list(load(path).warnings)
    assert engine.get_rng_state().tolist() == state
    return warnings


@pytest.mark.parametrize(
    ("layers", "sentences"),
    [
        ("flatten\nlinear: 16\nrelu", []),
        (
            "flatten\nlinear: 16\nsign",
            ["layer 2, sign, lets no gradient through: the weights of layer 1,"],
        ),
        (
            "flatten\nlinear: 16\nlinear: 16\nlinear: 16\nlinear: 16\nsign",
            ["layer 5, sign, lets no gradient through: the weights of layers 1, 2, 3, ..."],
        ),
        ("flatten\nsign", []),
        ("flatten\nresidual: [linear: 784, sign]", ["layer 1.1, sign, lets no gradient through"]),
        ("flatten\nlinear: 784\nresidual: [linear: 784, sign]", ["layer 2.1, sign, lets no"]),
        ("flatten\nlinear: 8\nresidual: [sign]", []),
        ("flatten\nrepeat: {times: 3, layers: [linear: 8, sign]}", ["layer 1.0.1, sign, lets no"]),
        ("flatten\nthrough\nresidual: [sign]", ["layer 1, through: 1 of its 2 parameters gets"]),
        ("flatten\nthrough", ["layer 1, through: 1 of its 2 parameters gets no gradient"]),
        (
            "flatten\nlinear: 8\nlooks",
            ["layer 2, looks, lets no gradient through: the weights of layer 1,"],
        ),
        (
            "flatten\nlinear: 8\nreshape: [8, 1]\nsoftmax\nflatten",
            ["layer 3, softmax, is taken over a single value (dim: -1): the weights of layer 1"],
        ),
        ("flatten\nlinear: 8\nreshape: [8, 1]\nsoftmax: 0\nflatten", []),
        (
            "flatten\nlinear: 8\nreshape: [8, 1]\nlayer_norm\nflatten",
            ["layer 3, layer_norm, normalises a single value: the weights of layer 1,"],
        ),
        ("flatten\nlinear: 8\nlayer_norm", []),
        (
            "conv: {out: 4, kernel: 28}\ngroup_norm: 4\nflatten",
            ["layer 1, group_norm 4, normalises a single value"],
        ),
        (
            "reshape: [1, 784]\ngru: {out: 4, last: true}",
            ["layer 1, gru 4: its input has one step, so its recurrent weights get no gradient"],
        ),
        ("reshape: [2, 392]\ngru: {out: 4, last: true}", []),
    ],
)
def test_weights_without_a_gradient(config_file: Write, layers: str, sentences: list[str]) -> None:
    warnings = warned(config_file, layers)
    assert [one.code for one in warnings] == ["W110"] * len(sentences)
    for warning, sentence in zip(warnings, sentences, strict=True):
        assert warning.message.startswith(sentence)
        assert warning.location is not None and warning.location.line and warning.caret


def test_frozen_weights_ask_for_no_gradient(config_file: Write) -> None:
    layers = "flatten\nlinear: {out: 16, name: first}\nsign"
    assert not warned(config_file, layers, ("loss:", "freeze: [first]\nloss:"))


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        ("part", "loss 'part' never sees 2 of the 10 outputs of layer 3, linear 'head': 8, 9"),
        ("{name: part, classes: 10}", ""),
        (
            "{name: nll, weight: [1, 1, 1, 0, 1, 1, 1, 1, 1, 1]}",
            "loss 'nll' never sees 1 of the 10 outputs of layer 3, linear 'head': 3, counted",
        ),
        ("{name: cross_entropy, weight: [1, 1, 1, 0, 1, 1, 1, 1, 1, 1]}", ""),
    ],
)
def test_outputs_that_change_nothing(config_file: Write, loss: str, sentence: str) -> None:
    warnings = warned(config_file, "flatten\nlinear: 16\nrelu", ("cross_entropy", loss))
    assert [one.code for one in warnings] == (["W114"] if sentence else [])
    assert all(one.message.startswith(sentence) for one in warnings)
