"""Schedulers with options at the ends of their ranges and outside: torch's rates, or a refusal."""

from __future__ import annotations

import itertools
import math

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from gradcli import engine  # noqa: E402
from gradcli.engine import nn, optim  # noqa: E402
from gradcli.errors import GradcliError  # noqa: E402

pytestmark = pytest.mark.parity
STEPS = 9
COUNTS = [-1, 0, 1, 2, 3]
SHARES = [-0.5, 0.0, 0.5, 1.0, 1.5]
GRID = {
    "ConstantLR": {"factor": SHARES, "total_iters": COUNTS},
    "LinearLR": {"start_factor": SHARES, "end_factor": SHARES, "total_iters": COUNTS},
    "StepLR": {"step_size": COUNTS, "gamma": SHARES},
    "MultiStepLR": {"milestones": [[], [0], [0, 0], [2, 1], [-1], [-1, 0, 3]], "gamma": SHARES},
    "ExponentialLR": {"gamma": SHARES},
    "CosineAnnealingLR": {"T_max": COUNTS, "eta_min": [0.0, 0.2, -0.1]},
    "CosineAnnealingWarmRestarts": {"T_0": COUNTS, "T_mult": [0, 1, 2], "eta_min": [0.0, 0.2]},
    "PolynomialLR": {"total_iters": COUNTS, "power": [-1.0, 0.0, 0.5, 2.0]},
    "OneCycleLR": {
        "max_lr": [0.0, 0.1],
        "total_steps": [-1, 0, 1, 2, 3, 7],
        "pct_start": [-0.1, 0.0, 0.5, 1.0, 1.1],
        "anneal_strategy": ["cos", "linear"],
        "three_phase": [False, True],
        "cycle_momentum": [False],
    },
    "ReduceLROnPlateau": {
        "factor": SHARES,
        "patience": [-1, 0, 1],
        "cooldown": [-1, 0, 1],
        "min_lr": [0.0, 0.05],
        "threshold": [0.0, 1e-4],
    },
}


def rates(library, optimizer, name, options):
    """The rates of some steps; and whether it refused before their end."""
    found = []
    try:
        scheduler = getattr(library.lr_scheduler, name)(optimizer, **options)
        for _ in range(STEPS):
            found.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            scheduler.step(*[1.0] * (name == "ReduceLROnPlateau"))
    except (GradcliError, ValueError, ZeroDivisionError):
        return found, True
    return found, False


def refused_here(name, options):
    """Lengths of less than 1 and numbers below 0, as rows of docs/differences.md say."""
    length = {"StepLR": "step_size", "CosineAnnealingLR": "T_max", "PolynomialLR": "total_iters"}
    negative = any(isinstance(one, (int, float)) and one < 0 for one in options.values())
    return negative or options.get(length.get(name), 1) < 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(GRID))
def test_edges_give_the_rates_of_torch_or_a_refusal(name):
    for values in itertools.product(*GRID[name].values()):
        options = dict(zip(GRID[name], values, strict=True))
        p, q = nn.Parameter(engine.zeros(1)), torch.nn.Parameter(torch.zeros(1))
        p.grad, q.grad = engine.zeros(1), torch.zeros(1)
        found, refused = rates(optim, optim.SGD([p], lr=0.1), name, options)
        expected, cannot = rates(torch.optim, torch.optim.SGD([q], lr=0.1), name, options)
        if refused_here(name, options):
            assert refused and not found, options
            continue
        # Where torch divides by 0 there is a rate here.
        assert refused == cannot or cannot, options
        for rate, other in zip(found, expected, strict=False):
            assert math.isclose(rate, other, rel_tol=1e-12, abs_tol=1e-15), options
