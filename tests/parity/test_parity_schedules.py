"""Learning rates over 200 steps: lr_scheduler sets what torch's sets."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from gradcli import engine  # noqa: E402
from gradcli.engine import optim  # noqa: E402
from gradcli.engine.optim import schedule  # noqa: E402

pytestmark = pytest.mark.parity
STEPS = 200
BASES = [0.5, 0.02]  # of two groups
CASES = [
    ("StepLR", {"step_size": 7}),
    ("StepLR", {"step_size": 30, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [3, 50, 50, 120], "gamma": 0.3}),
    ("MultiStepLR", {"milestones": [60, 20]}),
    ("ConstantLR", {}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 40}),
    ("LinearLR", {}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.1, "total_iters": 150}),
    ("ExponentialLR", {"gamma": 0.97}),
    ("PolynomialLR", {}),
    ("PolynomialLR", {"total_iters": 170, "power": 2.5}),
    ("CosineAnnealingLR", {"T_max": 200}),
    ("CosineAnnealingLR", {"T_max": 60, "eta_min": 0.001}),
    ("CosineAnnealingWarmRestarts", {"T_0": 30}),
    ("CosineAnnealingWarmRestarts", {"T_0": 9, "T_mult": 2, "eta_min": 0.01}),
    ("OneCycleLR", {"max_lr": 0.3, "total_steps": 200}),
    ("OneCycleLR", {"max_lr": [0.3, 0.7], "epochs": 20, "steps_per_epoch": 10, "pct_start": 0.45}),
    (
        "OneCycleLR",
        {"max_lr": 1.0, "total_steps": 230, "three_phase": True, "anneal_strategy": "linear"},
    ),
    (
        "OneCycleLR",
        {"max_lr": 0.1, "total_steps": 200, "max_momentum": [0.9, 0.8], "base_momentum": 0.5},
    ),
    ("LambdaLR", {"lr_lambda": lambda epoch: 1 / (1 + epoch)}),
    ("LambdaLR", {"lr_lambda": [lambda epoch: 0.9**epoch, lambda epoch: epoch % 5]}),
    ("MultiplicativeLR", {"lr_lambda": lambda epoch: 1 - 1 / (2 + epoch)}),
]


def optimizers(kind="SGD", **options):
    """Two groups with rates of their own, ours and torch's."""
    made = []
    for library, tensor in ((optim, engine.zeros), (torch.optim, torch.zeros)):
        groups = [{"params": [tensor(3, requires_grad=True)], "lr": rate} for rate in BASES]
        made.append(getattr(library, kind)(groups, **options))
    return made


def case_id(value):
    """The value as text, without addresses: those differ from process to process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


def schedulers(name, options, made):
    """The same scheduler for each of the two optimizers."""
    mine, other = made
    return (
        getattr(optim.lr_scheduler, name)(mine, **options),
        getattr(torch.optim.lr_scheduler, name)(other, **options),
    )


def column(optimizer, key="lr"):
    """A number of each group; of betas the first."""
    found = [group[key] for group in optimizer.param_groups]
    return [each[0] if isinstance(each, tuple) else float(each) for each in found]


def compare(agree, name, found, expected, terms=8 * STEPS):
    agree(
        f"schedule.{name}",
        engine.tensor(found, dtype=engine.float64),
        torch.tensor(expected, dtype=torch.float64),
        terms=terms,
    )


def follow(made, pair, steps=STEPS, keys=("lr",), arguments=None):
    """What both optimizers have before each step."""
    seen = ([], [])
    for step in range(steps):
        for optimizer, scheduler, rows in zip(made, pair, seen, strict=True):
            rows.append([number for key in keys for number in column(optimizer, key)])
            assert scheduler.get_last_lr() == column(optimizer)
            optimizer.step()
            scheduler.step(*(arguments[step : step + 1] if arguments else ()))
    return seen


@pytest.mark.parametrize(("name", "options"), CASES, ids=case_id)
def test_200_rates_of_two_groups(name, options, agree):
    made = optimizers(momentum=0.9)
    pair = schedulers(name, options, made)
    keys = ("lr", "momentum")
    compare(agree, name, *follow(made, pair, keys=keys))


@pytest.mark.parametrize("three", [False, True])
def test_one_cycle_moves_the_first_beta(three, agree):
    made = optimizers("AdamW")
    options = {"max_lr": 0.01, "total_steps": STEPS, "three_phase": three}
    pair = schedulers("OneCycleLR", options, made)
    compare(agree, "OneCycleLR", *follow(made, pair, keys=("lr", "betas")))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"patience": 3, "factor": 0.5, "cooldown": 4, "min_lr": [0.01, 0.001]},
        {"mode": "max", "patience": 0, "threshold": 0.05, "threshold_mode": "abs"},
        {"mode": "max", "patience": 5, "threshold": 0.2, "eps": 0.01},
    ],
    ids=case_id,
)
def test_plateaus(options, agree):
    figures = [
        math.nan if step % 41 == 7 else 2 + math.sin(step / 9) / (1 + step / 50)
        for step in range(STEPS)
    ]
    made = optimizers()
    pair = schedulers("ReduceLROnPlateau", options, made)
    seen = follow(made, pair, arguments=figures)
    assert len({tuple(row) for row in seen[0]}) > 1
    compare(agree, "ReduceLROnPlateau", *seen)
    state = pair[1].state_dict()
    mine = pair[0].state_dict()
    names = ("best", "num_bad_epochs", "cooldown_counter", "last_epoch")
    assert [mine[key] for key in names] == [state[key] for key in names]


def parts_of(library, optimizer):
    kinds = library.lr_scheduler
    return [
        kinds.LinearLR(optimizer, 0.1, total_iters=20),
        kinds.CosineAnnealingLR(optimizer, 60),
        kinds.MultiStepLR(optimizer, [30, 60], gamma=0.5),
    ]


def test_one_after_another(agree):
    made = optimizers()
    pair = [
        library.lr_scheduler.SequentialLR(one, parts_of(library, one), milestones=[20, 80])
        for library, one in zip((optim, torch.optim), made, strict=True)
    ]
    compare(agree, "SequentialLR", *follow(made, pair))


def chain_of(library, optimizer):
    kinds = library.lr_scheduler
    return [
        kinds.ConstantLR(optimizer, 0.1, total_iters=15),
        kinds.ExponentialLR(optimizer, 0.99),
        kinds.CosineAnnealingLR(optimizer, 50, eta_min=0.001),
        kinds.PolynomialLR(optimizer, 150, power=0.5),
    ]


def test_all_at_once(agree):
    made = optimizers()
    pair = [
        library.lr_scheduler.ChainedScheduler(chain_of(library, one))
        for library, one in zip((optim, torch.optim), made, strict=True)
    ]
    compare(agree, "ChainedScheduler", *follow(made, pair))


@pytest.mark.parametrize(("name", "options"), CASES, ids=case_id)
def test_a_rate_changed_from_outside_is_treated_alike(name, options):
    made = optimizers(momentum=0.9)
    pair = schedulers(name, options, made)
    for step in range(STEPS):
        for optimizer, scheduler in zip(made, pair, strict=True):
            if step == 70:
                for group in optimizer.param_groups:
                    group["lr"] *= 3
            optimizer.step()
            scheduler.step()
        assert column(made[0]) == pytest.approx(column(made[1]), rel=1e-10, abs=1e-14)


@pytest.mark.parametrize(("name", "options"), CASES[:18], ids=case_id)
def test_torchs_state_is_taken_over_and_goes_on_alike(name, options):
    made = optimizers(momentum=0.9)
    pair = schedulers(name, options, made)
    for _ in range(60):
        made[1].step()
        pair[1].step()
    state = made[1].state_dict()
    state["state"] = {}
    made[0].load_state_dict(state)
    pair[0].load_state_dict(pair[1].state_dict())
    seen = follow(made, pair, 60)
    for found, expected in zip(*seen, strict=True):
        assert found == pytest.approx(expected, rel=1e-10)


def test_fractions_of_an_epoch_between_restarts():
    made = optimizers()
    mine, other = schedulers("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2}, made)
    for epoch in (0.25, 1, 2.75, 3, 8.5, 9.25, 40.125):
        mine.step(epoch)
        other.step(epoch)
        assert column(made[0]) == pytest.approx(column(made[1]), rel=1e-12)
        assert mine.last_epoch == other.last_epoch


def test_schedules_of_configs_are_torchs_over_200_steps(agree):
    """factor(step) is what torch's scheduler multiplies the rate by after `step` steps."""
    one_cycle = {"max_lr": 0.5, "total_steps": STEPS, "cycle_momentum": False}
    pairs = [
        (schedule.StepSchedule(total=STEPS, at=[5, 12], factor=0.3), "MultiStepLR", ([5, 12], 0.3)),
        (schedule.ExponentialSchedule(total=STEPS, factor=0.9), "ExponentialLR", (0.9,)),
        (schedule.PolynomialSchedule(total=STEPS, power=2), "PolynomialLR", (STEPS, 2)),
        (schedule.CosineSchedule(total=STEPS, final=0.1), "CosineAnnealingLR", (STEPS, 0.05)),
        (
            schedule.CosineSchedule(total=STEPS, final=0.2, restart=25, stretch=2),
            "CosineAnnealingWarmRestarts",
            (25, 2, 0.1),
        ),
        (schedule.LinearSchedule(total=STEPS, final=0.1), "LinearLR", (1.0, 0.1, STEPS)),
        (schedule.OneCycleSchedule(total=STEPS), "OneCycleLR", one_cycle),
        (
            schedule.OneCycleSchedule(total=STEPS, three_phase=True, rise=0.4, anneal="linear"),
            "OneCycleLR",
            {**one_cycle, "three_phase": True, "pct_start": 0.4, "anneal_strategy": "linear"},
        ),
    ]
    for mine, name, options in pairs:
        other = torch.optim.SGD([torch.zeros(1)], lr=0.5)
        make = getattr(torch.optim.lr_scheduler, name)
        scheduler = make(other, **options) if isinstance(options, dict) else make(other, *options)
        expected = []
        for _ in range(STEPS):
            expected.append(scheduler.get_last_lr()[0])
            other.step()
            scheduler.step()
        compare(agree, name, [0.5 * mine.factor(step) for step in range(STEPS)], expected)
        assert any(a != b for a, b in pairwise(expected))
