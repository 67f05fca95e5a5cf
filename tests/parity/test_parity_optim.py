"""Optimizers, clipping and schedules: 20 steps end where torch's do."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import FLOATS, close, ours, randn  # noqa: E402

from gradcli.engine import optim  # noqa: E402
from gradcli.engine.optim import schedule  # noqa: E402

pytestmark = pytest.mark.parity
STEPS = 20
SHAPES = [(7,), (3, 5), (2, 1, 3), (), (0, 4), (4097,)]
CASES = [
    ("SGD", {}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.05}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.4, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.7, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "betas": (0.5, 0.9), "eps": 1e-3}),
    ("Adam", {"lr": 0.1, "betas": (0.0, 0.5)}),
    ("Adam", {"lr": 0.01, "weight_decay": 0.1}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.5, "betas": (0.8, 0.95)}),
]


def pairs(dtype, shapes=SHAPES):
    reference = [
        randn(*shape, dtype=dtype, seed=i).requires_grad_() for i, shape in enumerate(shapes)
    ]
    return [ours(p, requires_grad=True) for p in reference], reference


def give_gradients(mine, reference, step):
    """Each step another gradient; the third parameter has none in every fourth step."""
    for i, (p, q) in enumerate(zip(mine, reference, strict=True)):
        if i == 2 and step % 4 == 0:
            p.grad = q.grad = None
            continue
        q.grad = randn(*q.shape, dtype=q.dtype, seed=1000 * step + i)
        p.grad = ours(q.grad)


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_20_steps(name, options, dtype):
    mine, reference = pairs(dtype)
    optimizer = getattr(optim, name)(mine, **options)
    other = getattr(torch.optim, name)(reference, **options)
    for step in range(STEPS):
        give_gradients(mine, reference, step)
        optimizer.step()
        other.step()
    for p, q in zip(mine, reference, strict=True):
        close(p, q, terms=8 * STEPS)
    for i, kept in other.state_dict()["state"].items():
        for key, value in kept.items():
            if key != "step" and value is not None:
                close(optimizer.state_dict()["state"][i][key], value, terms=8 * STEPS)


def test_defaults_are_torchs():
    for name in ("SGD", "Adam", "AdamW"):
        mine, reference = pairs(torch.float32)
        defaults = getattr(torch.optim, name)(reference).defaults
        found = getattr(optim, name)(mine).defaults
        assert found == {key: defaults[key] for key in found}


def test_groups_and_a_changing_rate():
    mine, reference = pairs(torch.float64, [(3,), (4,)])
    optimizer = optim.AdamW([{"params": mine[:1]}, {"params": mine[1:], "lr": 0.5}], lr=0.1)
    other = torch.optim.AdamW(
        [{"params": reference[:1]}, {"params": reference[1:], "lr": 0.5}], lr=0.1
    )
    for step in range(STEPS):
        give_gradients(mine, reference, step)
        for groups in (optimizer.param_groups, other.param_groups):
            for group, rate in zip(groups, (0.1, 0.5), strict=True):
                group["lr"] = rate / (1 + step)
        optimizer.step()
        other.step()
    for p, q in zip(mine, reference, strict=True):
        close(p, q, terms=8 * STEPS)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_torchs_state_is_taken_over_and_goes_on_alike(name):
    options = {"momentum": 0.9, "dampening": 0.2} if name == "SGD" else {}
    mine, reference = pairs(torch.float64, [(3,), (2, 2)])
    other = getattr(torch.optim, name)(reference, lr=0.1, **options)
    for step in range(5):
        give_gradients(mine, reference, step)
        other.step()
    state = other.state_dict()
    converted = {
        i: {
            key: ours(value) if isinstance(value, torch.Tensor) else value
            for key, value in kept.items()
        }
        for i, kept in state["state"].items()
    }
    mine = [ours(q, requires_grad=True) for q in reference]
    optimizer = getattr(optim, name)(mine, **options)
    optimizer.load_state_dict({"state": converted, "param_groups": state["param_groups"]})
    assert optimizer.param_groups[0]["lr"] == 0.1
    for step in range(5, STEPS):
        give_gradients(mine, reference, step)
        optimizer.step()
        other.step()
    for p, q in zip(mine, reference, strict=True):
        close(p, q, terms=8 * STEPS)


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("max_norm", [0.0, 0.5, 1e3])
def test_clipping(max_norm, dtype):
    mine, reference = pairs(dtype)
    give_gradients(mine, reference, 0)
    found = optim.clip_grad_norm_(mine, max_norm)
    expected = torch.nn.utils.clip_grad_norm_(reference, max_norm)
    close(found, expected)
    for p, q in zip(mine, reference, strict=True):
        assert (p.grad is None) == (q.grad is None)
        if p.grad is not None:
            close(p.grad, q.grad)


def test_schedules_are_torchs_where_torch_has_them():
    """factor(step) is what torch's scheduler multiplies the rate by after `step` steps."""
    base = 0.5
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=base)
    kinds = torch.optim.lr_scheduler
    pairs_of = [
        (
            schedule.Step(total=30, at=[5, 12], factor=0.3),
            lambda: kinds.MultiStepLR(optimizer, [5, 12], gamma=0.3),
        ),
        (
            schedule.Cosine(total=30, final=0.1),
            lambda: kinds.CosineAnnealingLR(optimizer, 30, eta_min=0.1 * base),
        ),
        (
            schedule.Linear(total=30, final=0.1),
            lambda: kinds.LinearLR(optimizer, 1.0, 0.1, total_iters=30),
        ),
    ]
    for mine, make in pairs_of:
        for group in optimizer.param_groups:
            group["lr"] = base
            group.pop("initial_lr", None)
        other = make()
        for step in range(30):
            assert math.isclose(base * mine.factor(step), other.get_last_lr()[0], rel_tol=1e-12)
            optimizer.step()
            other.step()
