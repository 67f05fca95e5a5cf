"""Schedulers on optimizers: state, capture, and what they refuse."""

from __future__ import annotations

import math

import pytest

from gradcli import engine
from gradcli.engine import optim
from gradcli.engine.optim import lr_scheduler as kinds
from gradcli.errors import OptionError, RangeError


def sgd(lr=0.5, **options):
    return optim.SGD([engine.ones(3, requires_grad=True)], lr=lr, **options)


MAKERS = [
    lambda one: kinds.StepLR(one, 3),
    lambda one: kinds.MultiStepLR(one, [2, 5]),
    lambda one: kinds.LinearLR(one, 0.5, total_iters=8),
    lambda one: kinds.ConstantLR(one, 0.5, total_iters=8),
    lambda one: kinds.ExponentialLR(one, 0.9),
    lambda one: kinds.PolynomialLR(one, 15),
    lambda one: kinds.CosineAnnealingLR(one, 9, 0.1),
    lambda one: kinds.CosineAnnealingWarmRestarts(one, 4),
    lambda one: kinds.OneCycleLR(one, 1.0, 30),
    lambda one: kinds.SequentialLR(
        one, [kinds.LinearLR(one), kinds.CosineAnnealingLR(one, 9)], [6]
    ),
    lambda one: kinds.ChainedScheduler([kinds.LinearLR(one), kinds.ExponentialLR(one, 0.9)]),
]


@pytest.mark.parametrize("make", MAKERS)
def test_a_scheduler_goes_on_from_its_state_with_the_same_bits(make):
    first = sgd(momentum=0.9)
    whole = make(first)
    for _ in range(7):
        whole.step()
    second = sgd(momentum=0.9)
    resumed = make(second)
    second.load_state_dict(first.state_dict())
    resumed.load_state_dict(whole.state_dict())
    for _ in range(8):
        whole.step()
        resumed.step()
        assert first.param_groups[0]["lr"] == second.param_groups[0]["lr"]
        assert first.param_groups[0]["momentum"] == second.param_groups[0]["momentum"]
    assert resumed.state_dict() == whole.state_dict()


def test_a_plateau_goes_on_from_its_state():
    first, second = sgd(), sgd()
    whole, resumed = (
        kinds.ReduceLROnPlateau(one, patience=1, cooldown=1) for one in (first, second)
    )
    for figure in (3.0, 2.0, 2.0):
        whole.step(figure)
    resumed.load_state_dict(whole.state_dict())
    for figure in (2.0, 2.0, engine.tensor(1.0), 1.0, 1.0, 1.0):
        whole.step(figure)
        resumed.step(figure)
    assert first.param_groups[0]["lr"] == second.param_groups[0]["lr"] < 0.5


def test_the_first_rate_stays_in_the_optimizers_state():
    first, second = sgd(0.5), sgd(0.1)
    kinds.ExponentialLR(first, 0.5).step()
    second.load_state_dict(first.state_dict())
    again = kinds.ExponentialLR(second, 0.5, last_epoch=1)
    assert again.get_last_lr() == again.get_lr() == [0.125]


def test_a_captured_step_takes_each_new_rate():
    results = []
    for eager in (False, True):
        weight = engine.ones(4, requires_grad=True)
        optimizer = optim.Adam([weight], lr=0.5)
        scheduler = kinds.CosineAnnealingLR(optimizer, 12)

        def step(x, optimizer=optimizer, weight=weight):
            optimizer.zero_grad()
            loss = ((weight * x) ** 2).sum()
            loss.backward()
            optimizer.step()
            return loss

        fast = engine.capture(step, eager=eager)
        losses = []
        for i in range(12):
            losses.append(fast(engine.full((4,), 1.0 + i)).item())
            scheduler.step()
        assert eager or not fast.fallback_reason
        results.append((losses, weight.tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: kinds.StepLR(None, 3), OptionError, "optimizer must be an Optimizer"),
        (lambda: kinds.StepLR(sgd(), 0), OptionError, "step_size must be a whole number >= 1"),
        (lambda: kinds.StepLR(sgd(), 3, last_epoch=4), OptionError, "has no initial_lr"),
        (lambda: kinds.LinearLR(sgd(), 0.0), OptionError, "start_factor must be a number above 0"),
        (lambda: kinds.LinearLR(sgd(), 1.0, 2.0), OptionError, "end_factor must be"),
        (lambda: kinds.ConstantLR(sgd(), 2.0), OptionError, "factor must be a number from 0 to 1"),
        (lambda: kinds.LambdaLR(sgd(), [math.sqrt] * 2), OptionError, "lr_lambda must be one or 1"),
        (lambda: kinds.OneCycleLR(sgd(), 1.0), OptionError, "give total_steps, or both"),
        (lambda: kinds.OneCycleLR(sgd(), [1.0, 2.0], 9), OptionError, "max_lr must be a number"),
        (lambda: kinds.OneCycleLR(sgd(), 1.0, 9, pct_start=2), OptionError, "from 0 to 1, got 2"),
        (
            lambda: kinds.OneCycleLR(sgd(), 1.0, 9, anneal_strategy="no"),
            OptionError,
            "'cos' or 'linear'",
        ),
        (
            lambda: kinds.OneCycleLR(optim.Adagrad([engine.ones(1)]), 1.0, 9),
            OptionError,
            "Adagrad has neither momentum nor betas",
        ),
        (
            lambda: kinds.ReduceLROnPlateau(sgd(), "up"),
            OptionError,
            "'min' or 'max', got 'up'",
        ),
        (
            lambda: kinds.ReduceLROnPlateau(sgd(), factor=1.0),
            OptionError,
            r"in \[0, 1\)",
        ),
        (
            lambda: kinds.ReduceLROnPlateau(sgd(), threshold_mode="no"),
            OptionError,
            "threshold_mode must be",
        ),
        (
            lambda: kinds.CosineAnnealingWarmRestarts(sgd(), 3).step(-1),
            OptionError,
            "epoch must be 0 or more",
        ),
        (lambda: kinds.ChainedScheduler([]), OptionError, "got no schedulers"),
        (
            lambda: kinds.ChainedScheduler([kinds.StepLR(sgd(), 3)], sgd()),
            OptionError,
            "scheduler 0 is for another optimizer",
        ),
        (
            lambda: kinds.StepLR(sgd(), 3).load_state_dict({"last_epoch": 3}),
            OptionError,
            "StepLR has no 'base_lrs' in its state",
        ),
        (
            lambda: kinds.StepLR(sgd(), 3).load_state_dict({"last_epoch": 3, "base_lrs": [1, 2]}),
            OptionError,
            "is for 1 group, the state for 2",
        ),
    ],
)
def test_impossible_schedulers_are_refused(make, error, says):
    with pytest.raises(error, match=says):
        make()


def test_a_sequence_needs_one_milestone_less_and_no_figures():
    optimizer = sgd()
    parts = [kinds.StepLR(optimizer, 3), kinds.ExponentialLR(optimizer, 0.5)]
    with pytest.raises(OptionError, match="2 schedulers need 1 milestone, got 2"):
        kinds.SequentialLR(optimizer, parts, [3, 5])
    with pytest.raises(OptionError, match="ReduceLROnPlateau needs figures"):
        kinds.SequentialLR(optimizer, [kinds.ReduceLROnPlateau(optimizer)], [])


def test_one_cycle_ends_at_its_last_step():
    scheduler = kinds.OneCycleLR(sgd(momentum=0.9), 1.0, 3)
    for _ in range(3):
        scheduler.step()
    with pytest.raises(RangeError, match="was made for 3 steps, this is step 4"):
        scheduler.step()
