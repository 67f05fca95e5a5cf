"""Training holds no more memory at its end than after its first steps, without the collector."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.device import cpu

Build = Callable[[], tuple[nn.Module, engine.Tensor]]


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def mlp() -> tuple[nn.Module, engine.Tensor]:
    layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
    return layers, engine.randn(6, 4)


def cnn() -> tuple[nn.Module, engine.Tensor]:
    layers = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(8, 3),
    )  # fmt: skip
    return layers, engine.randn(6, 1, 6, 6)


@pytest.mark.parametrize(("build", "steps"), [(mlp, 2000), (cnn, 500)])
def test_memory_is_flat_over_many_steps(build: Build, steps: int) -> None:
    model, x = build()
    target = engine.tensor([0, 1, 2, 0, 1, 2])
    optimizer = engine.optim.AdamW(model.parameters(), lr=1e-3)
    held: set[int] = set()
    for step in range(steps):
        engine.manual_seed(1, step=step)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        engine.optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step >= 2:
            held.add(cpu.allocated())
    assert len(held) == 1
