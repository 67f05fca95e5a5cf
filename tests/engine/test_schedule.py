"""Schedules as functions of the step."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from gradcli.engine.optim.schedule import SCHEDULES, Constant, Cosine, Linear, Step
from gradcli.errors import OptionError

ALL = [
    Constant(total=100),
    Step(total=100, at=[30, 60], factor=0.5),
    Cosine(total=100, final=0.1),
    Linear(total=100, final=0.25),
]
WARM = [
    Constant(total=100, warmup=10),
    Step(total=100, at=[30, 60], factor=0.5, warmup=10),
    Cosine(total=100, final=0.1, warmup=10),
    Linear(total=100, final=0.25, warmup=10),
]


def test_the_table_has_all_four():
    assert list(SCHEDULES) == ["constant", "step", "cosine", "linear"]
    assert list(SCHEDULES.values()) == [Constant, Step, Cosine, Linear]


@pytest.mark.parametrize("schedule", WARM)
def test_warmup_rises_in_a_straight_line_to_1(schedule):
    assert [schedule.factor(s) for s in range(10)] == pytest.approx(
        [(s + 1) / 10 for s in range(10)]
    )
    assert schedule.factor(10) == 1


@pytest.mark.parametrize("schedule", ALL)
def test_without_warmup_the_first_step_has_the_full_rate(schedule):
    assert schedule.factor(0) == 1


@pytest.mark.parametrize("schedule", [*ALL, *WARM])
def test_after_the_warmup_it_never_rises_and_holds_past_the_end(schedule):
    values = [schedule.factor(step) for step in range(schedule.warmup, 400)]
    assert all(b <= a for a, b in pairwise(values))
    assert min(values) >= 0
    assert {schedule.factor(step) for step in (100, 101, 150, 10**9)} == {schedule.factor(100)}


def test_constant_is_1():
    assert {Constant(total=5).factor(step) for step in range(20)} == {1.0}


def test_step_multiplies_at_each_mark():
    schedule = Step(total=10, at=[2, 5], factor=0.1)
    expected = [1, 1, 0.1, 0.1, 0.1, 0.01, 0.01]
    assert [schedule.factor(s) for s in range(7)] == pytest.approx(expected)


def test_cosine_follows_its_formula_to_the_final_share():
    schedule = Cosine(total=10, final=0.2, warmup=2)
    for step in range(2, 11):
        angle = math.pi * (step - 2) / 8
        assert schedule.factor(step) == pytest.approx(0.2 + 0.8 * (1 + math.cos(angle)) / 2)
    assert schedule.factor(10) == pytest.approx(0.2)


def test_linear_ends_at_the_final_share():
    schedule = Linear(total=10, final=0.5, warmup=2)
    assert schedule.factor(6) == pytest.approx(0.75)
    assert schedule.factor(10) == 0.5


def test_a_warmup_as_long_as_the_training_only_rises():
    for name in ("cosine", "linear"):
        schedule = SCHEDULES[name](total=4, warmup=4)
        assert [schedule.factor(s) for s in range(4)] == [0.25, 0.5, 0.75, 1]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Constant(total=-1), "total and warmup"),
        (lambda: Linear(total=3, warmup=-1), "total and warmup"),
        (lambda: Step(total=9, at=[5, 2]), "rising"),
        (lambda: Step(total=9, at=[2], factor=-1), "factor must be 0 or more"),
        (lambda: Cosine(total=9, final=math.nan), "final must be 0 or more"),
        (lambda: Constant(total=9).factor(-1), "a step must be 0 or more"),
    ],
)
def test_impossible_schedules_are_refused(make, says):
    with pytest.raises(OptionError, match=says):
        make()
