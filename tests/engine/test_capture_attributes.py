"""Attributes that change around a captured step: how many programs there are, what they hold."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn


def refuse(why: str) -> None:
    raise AssertionError(f"not captured: {why}")


def counted(model: Any, **options: Any) -> tuple[Any, list[int]]:
    runs = [0]

    def step(x: Any) -> Any:
        runs[0] += 1
        return model(x)

    return engine.capture(step, **options), runs


class Counting(nn.Module):
    """What Python alone keeps up: a count, the latest values, and a number that nobody reads."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.epoch = 0
        self.latest: Any = None
        self.scale = 1.0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        self.latest = x * self.scale
        return self.latest + 1.0


def test_what_the_step_itself_writes_makes_no_new_program() -> None:
    model = Counting()
    fast, runs = counted(model, on_fallback=refuse)
    for i in range(6):
        model.epoch = i  # no forward reads it
        assert fast(engine.full((3,), float(i))).tolist() == [i + 1.0] * 3
        assert model.latest.tolist() == [float(i)] * 3
    assert runs == [2]
    assert model.calls == 2


def test_numbers_that_go_to_and_fro_have_a_program_each() -> None:
    model = Counting()
    fast, runs = counted(model, on_fallback=refuse)
    for _ in range(5):
        for scale in (1.0, 2.0, -0.0, 0.0):
            model.scale = scale
            assert str(fast(engine.ones(1)).item()) == str(model(engine.ones(1)).item())
    assert runs == [8]
    assert len(fast.programs) == 4


def test_a_number_that_always_changes_stays_eager_and_is_named(
    allocated: Callable[[], int],
) -> None:
    model = Counting()
    told: list[str] = []
    fast, runs = counted(model, on_fallback=told.append)
    before = 0
    for i in range(200):
        model.scale = 0.5 * i
        assert fast(engine.ones(5000))[0].item() == 0.5 * i + 1.0
        if i == 20:
            before = allocated()
    assert runs == [200]
    assert len(told) == 1
    assert "for more than 64 states of its modules: Counting.scale changes again" in told[0]
    assert allocated() <= before + 100_000


def test_tensors_that_are_always_replaced_stay_eager_and_are_named(
    allocated: Callable[[], int],
) -> None:
    model = nn.Linear(50, 50)
    told: list[str] = []
    fast, runs = counted(model, on_fallback=told.append)
    levels = []
    for _ in range(150):
        model.weight = nn.Parameter(engine.randn(50, 50))
        assert fast(engine.ones(1, 50)).tolist() == model(engine.ones(1, 50)).tolist()
        levels.append(allocated())
    assert runs == [150]
    assert len(told) == 1
    assert "Linear.weight changes again and again; change tensors in place" in told[0]
    assert max(levels) - levels[1] < 50 * 50 * 4


def test_nothing_is_kept_of_parameters_that_were_replaced(allocated: Callable[[], int]) -> None:
    layer = nn.Linear(64, 64)
    fast, runs = counted(layer, on_fallback=refuse)
    x = engine.randn(2, 64)
    small = engine.randn(1, 64)
    levels = []
    for _ in range(100):
        old = weakref.ref(layer.weight.array.storage)
        for _ in range(3):
            assert fast(x).tolist() == layer(x).tolist()
            assert fast(small).tolist() == layer(small).tolist()
        layer.weight = nn.Parameter(engine.randn(64, 64))
        fast(x)
        assert old() is None
        levels.append(allocated())
    assert max(levels) - levels[2] < 64 * 64 * 4  # not one of them
    assert runs == [401]


def test_reading_attributes_is_as_it_was_when_nobody_records() -> None:
    model = Counting()
    fast, _ = counted(model, on_fallback=refuse)
    for _ in range(3):
        fast(engine.ones(1))
    with pytest.raises(ZeroDivisionError):
        engine.capture(lambda: 1 // 0)()
    assert "__getattribute__" not in vars(nn.Module)
