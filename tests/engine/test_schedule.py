"""Schedules as functions of the step."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from gradcli.engine.optim.schedule import (
    ConstantSchedule,
    CosineSchedule,
    ExponentialSchedule,
    LinearSchedule,
    OneCycleSchedule,
    PlateauSchedule,
    PolynomialSchedule,
    SequentialSchedule,
    StepSchedule,
)
from gradcli.errors import OptionError

ALL = [
    ConstantSchedule(total=100),
    StepSchedule(total=100, at=[30, 60], factor=0.5),
    CosineSchedule(total=100, final=0.1),
    LinearSchedule(total=100, final=0.25),
    PolynomialSchedule(total=100, final=0.25, power=0.5),
    ExponentialSchedule(total=100, factor=0.9, every=7),
    CosineSchedule(total=100, final=0.1, restart=100),
]
WARM = [
    ConstantSchedule(total=100, warmup=10),
    StepSchedule(total=100, at=[30, 60], factor=0.5, warmup=10),
    CosineSchedule(total=100, final=0.1, warmup=10),
    LinearSchedule(total=100, final=0.25, warmup=10),
    PolynomialSchedule(total=100, final=0.25, power=2, warmup=10),
    ExponentialSchedule(total=100, factor=0.9, every=7, warmup=10),
    CosineSchedule(total=100, final=0.1, restart=90, warmup=10),
]


def test_a_step_falls_at_points_or_after_every_so_many_steps():
    assert StepSchedule(total=100, every=30, factor=0.5) == StepSchedule(
        total=100, at=[30, 60, 90], factor=0.5
    )


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
    assert {ConstantSchedule(total=5).factor(step) for step in range(20)} == {1.0}


def test_step_multiplies_at_each_mark():
    schedule = StepSchedule(total=10, at=[2, 5], factor=0.1)
    expected = [1, 1, 0.1, 0.1, 0.1, 0.01, 0.01]
    assert [schedule.factor(s) for s in range(7)] == pytest.approx(expected)


def test_cosine_follows_its_formula_to_the_final_share():
    schedule = CosineSchedule(total=10, final=0.2, warmup=2)
    for step in range(2, 11):
        angle = math.pi * (step - 2) / 8
        assert schedule.factor(step) == pytest.approx(0.2 + 0.8 * (1 + math.cos(angle)) / 2)
    assert schedule.factor(10) == pytest.approx(0.2)


def test_linear_ends_at_the_final_share():
    schedule = LinearSchedule(total=10, final=0.5, warmup=2)
    assert schedule.factor(6) == pytest.approx(0.75)
    assert schedule.factor(10) == 0.5


def test_a_warmup_as_long_as_the_training_only_rises():
    for kind in (CosineSchedule, LinearSchedule, PolynomialSchedule):
        schedule = kind(total=4, warmup=4)
        assert [schedule.factor(s) for s in range(4)] == [0.25, 0.5, 0.75, 1]


def plateau(**options):
    return PlateauSchedule(total=100, metric="val.loss", rising=False, **options)


def test_restarts_begin_anew_and_grow():
    schedule = CosineSchedule(total=100, final=0.5, restart=10, stretch=2, warmup=5)
    assert [schedule.factor(step) for step in (5, 15, 35, 75)] == [1, 1, 1, 1]
    assert schedule.factor(10) == pytest.approx(0.75)
    assert schedule.factor(25) == pytest.approx(0.75)
    assert schedule.factor(1000) == schedule.factor(99)


def test_one_cycle_meets_its_three_levels():
    schedule = OneCycleSchedule(total=100, rise=0.3, start=0.1, final=0.01, warmup=0)
    assert schedule.factor(0) == pytest.approx(0.1)
    assert schedule.factor(29) == pytest.approx(1)
    assert schedule.factor(99) == pytest.approx(0.01)
    assert schedule.factor(10**6) == schedule.factor(99)


def test_one_cycle_begins_behind_the_warmup():
    schedule = OneCycleSchedule(total=110, rise=0.3, start=0.1, final=0.01, warmup=10)
    assert schedule.factor(10) == pytest.approx(0.1)
    assert schedule.factor(39) == pytest.approx(1)


def test_a_sequence_hands_over_with_a_count_from_0():
    parts = (LinearSchedule(total=10, final=0.5), CosineSchedule(total=20, warmup=4))
    schedule = SequentialSchedule(total=30, parts=parts, at=(10,))
    assert [schedule.factor(step) for step in (0, 9)] == pytest.approx([1, 0.55])
    assert [schedule.factor(step) for step in (10, 13, 14)] == pytest.approx([0.25, 1, 1])
    assert schedule.factor(30) == 0


def test_a_plateau_falls_when_its_patience_runs_out():
    schedule = plateau(patience=1, factor=0.5, cooldown=2, final=0.2)
    seen = []
    for loss in [3, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, math.nan, 1, 1, 1, 1]:
        schedule.watch({"val.loss": loss, "val.accuracy": 0.0})
        seen.append(schedule.factor(7))
    assert seen == [1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2, 0.2, 0.2]


def test_a_plateau_goes_on_from_its_state():
    losses = [3, 2.5, 2.5, 2.4999, 2.6, 2.5, 1, 1, 1]
    whole, first, second = (plateau(patience=1, factor=0.5) for _ in range(3))
    for i, loss in enumerate(losses):
        whole.watch({"val.loss": loss})
        (first if i < 4 else second).watch({"val.loss": loss})
        if i == 3:
            second.load_state_dict(first.state_dict())
    assert second.state_dict() == whole.state_dict()
    assert second.factor(0) == whole.factor(0) < 1


def test_a_plateau_that_saw_nothing_has_no_best():
    fresh = plateau()
    fresh.load_state_dict(plateau().state_dict())
    assert fresh.state_dict() == {"best": None, "bad": 0, "resting": 0, "falls": 0}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: StepSchedule(total=9),
            "StepSchedule: needs either at, a list of points, or every, a number",
        ),
        (lambda: StepSchedule(total=9, at=[1], every=2), "StepSchedule: needs either at"),
        (lambda: CosineSchedule(total=9, restart=0), "restart must be a whole number >= 1"),
        (lambda: PolynomialSchedule(total=9, power=0), "power must be a number > 0"),
        (lambda: ExponentialSchedule(total=9, factor=0.0), "factor must be a number > 0"),
        (lambda: OneCycleSchedule(total=9, anneal="steps"), "'cos' or 'linear'"),
        (
            lambda: OneCycleSchedule(total=9, three_phase=True, rise=0.6),
            "rise must be from 0 to 0.5",
        ),
        (lambda: plateau(factor=1.0), r"factor must be a number in \[0, 1\)"),
        (lambda: plateau(threshold_mode="no"), "threshold_mode must be 'rel' or 'abs'"),
        (
            lambda: SequentialSchedule(total=9, parts=(ConstantSchedule(total=9),), at=(3,)),
            "1 part needs 0 rising steps",
        ),
        (lambda: ConstantSchedule(total=-1), "total must be a whole number >= 0"),
        (lambda: LinearSchedule(total=3, warmup=-1), "warmup must be a whole number >= 0"),
        (lambda: StepSchedule(total=9, at=[5, 2]), "rising"),
        (lambda: StepSchedule(total=9, at=[2], factor=-1), "factor must be a number >= 0"),
        (lambda: CosineSchedule(total=9, final=math.nan), "final must be a number >= 0"),
        (lambda: ConstantSchedule(total=9).factor(-1), "a step must be 0 or more"),
    ],
)
def test_impossible_schedules_are_refused(make, says):
    with pytest.raises(OptionError, match=says):
        make()
