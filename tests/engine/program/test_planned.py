"""The arena of a step is known before it: recorded on the meta device and planned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn, optim
from gradcli.engine.device import scope
from gradcli.engine.program.planned import arena_bytes
from gradcli.errors import CaptureError, DeviceError

F = nn.functional
BATCH = 6


class Training:
    """A small convolutional network with everything that keeps or draws numbers."""

    def __init__(self, mean: list[float]) -> None:
        self.model = nn.Sequential(
            nn.Conv2d(1, 4, 3),
            nn.BatchNorm2d(4),
            nn.GELU(),
            nn.MaxPool2d(2),
            nn.Dropout(0.25),
            nn.Flatten(),
            nn.Linear(4 * 3 * 3, 5),
        )
        self.mean = mean
        self.optimizer = optim.AdamW(self.model.parameters(), lr=0.01)

    def __call__(self, x: Any, target: Any) -> Any:
        """A step with a constant of Python's and one that is the same in every step."""
        self.optimizer.zero_grad()
        steps = engine.arange(64, dtype=engine.float32).reshape(8, 8) * 0.5
        loss = F.cross_entropy(self.model(x - engine.tensor(self.mean) + steps), target)
        loss.backward()
        optim.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss + steps[0, 0]  # which lies in the arena until here


class Rounded(Training):
    """The same with its products in bfloat16."""

    def __call__(self, x: Any, target: Any) -> Any:
        """The same step."""
        with engine.autocast():
            return super().__call__(x, target)


@pytest.mark.parametrize("kind", [Training, Rounded])
def test_it_is_the_arena_of_the_captured_step(kind: Callable[[list[float]], Training]) -> None:
    captured = engine.capture(kind([0.5]))
    for _ in range(3):
        captured(engine.rand(BATCH, 1, 8, 8), engine.zeros(BATCH, dtype=engine.int64))
    assert captured.fallback_reason == ""
    before = list(scope.devices)
    with engine.device("meta"):
        step = kind([0.5])
        args = engine.rand(BATCH, 1, 8, 8), engine.zeros(BATCH, dtype=engine.int64)
    assert arena_bytes(step, args) == captured.programs[0].arena_bytes > 0
    assert arena_bytes(step, args, passes=()) > captured.programs[0].arena_bytes
    del step, args
    assert scope.devices == before


def test_a_step_that_looks_at_numbers_has_none() -> None:
    x = engine.ones(3).to("meta")
    with pytest.raises(CaptureError, match="reads the values of a tensor"):
        arena_bytes(lambda y: y * y.sum().item(), [x])


def test_what_computes_nothing_is_not_captured() -> None:
    """Such a step goes on being made, as one that cannot be captured for another reason."""
    weight = engine.ones(3).to("meta")

    def step(x: Any) -> Any:
        weight.add_(x)
        return weight * 2

    said: list[str] = []
    captured = engine.capture(step, on_fallback=said.append)
    for _ in range(4):
        assert captured(engine.ones(3).to("meta")).shape == (3,)
    assert "'meta'" in said[0] and captured.programs == []
    with pytest.raises(DeviceError):
        weight.tolist()
