"""The scripts in examples/ do what they say, in a short form."""

from __future__ import annotations

import importlib.util
import math
import random
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def example(name: str) -> ModuleType:
    """A script as a module, without running its main part."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_sin_squared_has_the_losses_that_the_article_prints() -> None:
    losses = example("sin_squared").train()
    assert [round(loss, 4) for loss in (losses[0], losses[-1], min(losses))] == [
        1.7035,
        0.1297,
        0.1220,
    ]
    assert losses == pytest.approx(_in_plain_python(), abs=1e-5)


def _in_plain_python() -> list[float]:
    """The same training in float64, one number at a time."""
    random.seed(1)
    w1, b1, w2 = ([random.uniform(-1, 1) for _ in range(10)] for _ in range(3))
    b2, losses = random.uniform(-1, 1), []
    for _ in range(10):
        for x in (0.4 * i for i in range(51)):
            h = [1 / (1 + math.exp(-w * x - b)) for w, b in zip(w1, b1, strict=True)]
            off = sum(w * a for w, a in zip(w2, h, strict=True)) + b2 - math.sin(x) ** 2
            loss, step = off * off, 0.001 * 2 * off
            slopes = [step * w * a * (1 - a) for w, a in zip(w2, h, strict=True)]
            w2 = [w - step * a for w, a in zip(w2, h, strict=True)]
            w1 = [w - slope * x for w, slope in zip(w1, slopes, strict=True)]
            b1 = [b - slope for b, slope in zip(b1, slopes, strict=True)]
            b2 -= step
        losses.append(loss)
    return losses
