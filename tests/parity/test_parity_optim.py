"""Optimizers, clipping and schedules: 200 steps end where torch's do."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="parity needs the extra: pip install '.[parity]'")

from both import FLOATS, ours, randn  # noqa: E402

from gradcli.engine import optim  # noqa: E402

pytestmark = pytest.mark.parity
STEPS = 200
SHAPES = [(7,), (3, 5), (2, 1, 3), (), (0, 4), (4097,)]
MATRICES = [(3, 5), (5, 2), (1, 4), (6, 1), (4, 4)]
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
    ("Adam", {"lr": 0.01, "weight_decay": 0.1, "maximize": True}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.5, "betas": (0.8, 0.95)}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.1, "amsgrad": True, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "momentum_decay": 0.1, "maximize": True}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "betas": (0.4, 0.9)}),
    ("RAdam", {}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "betas": (0.4, 0.9), "maximize": True}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "eps": 1e-3}),
    ("RMSprop", {}),
    ("RMSprop", {"alpha": 0.4, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {"momentum": 0.9, "eps": 1e-4}),
    ("RMSprop", {"centered": True, "eps": 1e-2}),
    ("RMSprop", {"centered": True, "momentum": 0.6, "weight_decay": 0.01, "eps": 1e-2}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.05, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {"lr": 0.1, "initial_accumulator_value": 0.3, "eps": 1e-3}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.3, "rho": 0.5, "eps": 1e-4, "weight_decay": 0.1, "maximize": True}),
    ("Muon", {}),
    ("Muon", {"lr": 0.1, "momentum": 0.5, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"}),
    ("Muon", {"lr": 0.1, "weight_decay": 0.0, "ns_steps": 3, "ns_coefficients": (2, -1.5, 0.5)}),
]
NAMES = sorted({name for name, _ in CASES})


@pytest.fixture
def precise(monkeypatch):
    """Torch without its own shortcuts: Muon in full precision, NAdam's product in float64."""
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


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
def test_200_steps_with_a_changing_rate(name, options, dtype, agree, precise):
    mine, reference = pairs(dtype, MATRICES if name == "Muon" else SHAPES)
    optimizer = getattr(optim, name)(mine, **options)
    other = getattr(torch.optim, name)(reference, **options)
    rate = optimizer.param_groups[0]["lr"]
    for step in range(STEPS):
        for both in (optimizer, other):
            both.param_groups[0]["lr"] = rate * (1 + step % 7) / 7
        give_gradients(mine, reference, step)
        optimizer.step()
        other.step()
    for p, q in zip(mine, reference, strict=True):
        agree(f"optim.{name}", p, q, terms=8 * STEPS)
    for i, kept in other.state_dict()["state"].items():
        for key, value in kept.items():
            if key not in ("step", "mu_product") and value is not None:
                found = optimizer.state_dict()["state"][i][key]
                agree(f"optim.{name}", found, value, terms=8 * STEPS)


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("options", [{}, {"lr": 0.1, "nesterov": False, "weight_decay": 0.3}])
def test_muon_beside_adamw_is_both_of_torchs(options, dtype, agree, precise):
    mine, reference = pairs(dtype, MATRICES)
    others, other_reference = pairs(dtype, SHAPES)
    rest = {"lr": 0.02, "weight_decay": 0.1, "eps": 1e-6}
    optimizer = optim.MuonAdamW(
        [{"params": mine}, {"params": others, "adamw": True}],
        betas=(0.8, 0.95),
        **{f"adamw_{name}": value for name, value in rest.items()},
        **options,
    )
    theirs = [
        torch.optim.Muon(reference, **options),
        torch.optim.AdamW(other_reference, betas=(0.8, 0.95), **rest),
    ]
    for step in range(STEPS):
        give_gradients(mine, reference, step)
        give_gradients(others, other_reference, step)
        for one in (optimizer, *theirs):
            one.step()
    for p, q in zip([*mine, *others], [*reference, *other_reference], strict=True):
        agree("optim.MuonAdamW", p, q, terms=8 * STEPS)


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("options", [{}, {"betas": (0.5, 0.8), "weight_decay": 0.1, "lr": 0.01}])
def test_lion_is_its_papers(options, dtype, agree):
    """Torch has no Lion: Algorithm 2 of Chen et al. 2023."""
    mine, reference = pairs(dtype)
    optimizer = optim.Lion(mine, **options)
    rate, betas, decay = (optimizer.defaults[key] for key in ("lr", "betas", "weight_decay"))
    means = [torch.zeros_like(q) for q in reference]
    for step in range(STEPS):
        give_gradients(mine, reference, step)
        optimizer.step()
        for q, m in zip(reference, means, strict=True):
            if q.grad is not None:
                update = torch.sign(betas[0] * m + (1 - betas[0]) * q.grad)
                q.data -= rate * (update + decay * q.data)
                m.mul_(betas[1]).add_(q.grad, alpha=1 - betas[1])
    for p, q in zip(mine, reference, strict=True):
        agree("optim.Lion", p, q, terms=8 * STEPS)


@pytest.mark.parametrize("name", NAMES)
def test_defaults_are_torchs(name):
    mine, reference = pairs(torch.float32, [(2, 3)])
    defaults = getattr(torch.optim, name)(reference).defaults
    found = getattr(optim, name)(mine).defaults
    assert found == {key: defaults[key] for key in found}
    left = {"foreach", "capturable", "differentiable", "fused", "decoupled_weight_decay"}
    assert set(defaults) - set(found) <= left


@pytest.mark.parametrize("name", NAMES)
def test_groups_and_a_changing_rate(name, agree, precise):
    mine, reference = pairs(torch.float64, [(3, 2), (2, 4)])
    made = [
        getattr(kind, name)(
            [{"params": some[:1]}, {"params": some[1:], "lr": 0.5, "weight_decay": 0.3}], lr=0.1
        )
        for kind, some in ((optim, mine), (torch.optim, reference))
    ]
    for step in range(STEPS):
        give_gradients(mine, reference, step)
        for one in made:
            for group, rate in zip(one.param_groups, (0.1, 0.5), strict=True):
                group["lr"] = rate / (1 + step)
            one.step()
    for p, q in zip(mine, reference, strict=True):
        agree(f"optim.{name}", p, q, terms=8 * STEPS)
    found, expected = (one.state_dict() for one in made)
    for group, other in zip(found["param_groups"], expected["param_groups"], strict=True):
        assert group == {key: other[key] for key in group}
    assert found["state"].keys() >= expected["state"].keys()  # SGD of torch keeps nothing


@pytest.mark.parametrize("name", NAMES)
def test_a_group_that_comes_later(name, agree, precise):
    mine, reference = pairs(torch.float64, [(3, 2), (2, 4)])
    made = [
        getattr(kind, name)(some[:1], lr=0.1)
        for kind, some in ((optim, mine), (torch.optim, reference))
    ]
    for step in range(STEPS):
        if step == 50:
            for one, some in zip(made, (mine, reference), strict=True):
                one.add_param_group({"params": some[1:], "lr": 0.02})
        give_gradients(mine, reference, step)
        for one in made:
            one.step()
    for p, q in zip(mine, reference, strict=True):
        agree(f"optim.{name}", p, q, terms=8 * STEPS)


def converted(state):
    """Torch's state with tensors of our own."""
    return {
        number: {
            key: ours(value) if isinstance(value, torch.Tensor) else value
            for key, value in kept.items()
        }
        for number, kept in state.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_torchs_state_is_taken_over_and_goes_on_alike(name, agree, precise):
    options = {
        "SGD": {"momentum": 0.9, "dampening": 0.2},
        "RMSprop": {"momentum": 0.9, "centered": True},
        "Adam": {"amsgrad": True},
    }.get(name, {})
    mine, reference = pairs(torch.float64, [(3, 1), (2, 2)])
    other = getattr(torch.optim, name)(reference, lr=0.1, **options)
    for step in range(5):
        give_gradients(mine, reference, step)
        other.step()
    state = other.state_dict()
    mine = [ours(q, requires_grad=True) for q in reference]
    optimizer = getattr(optim, name)(mine, **options)
    groups = state["param_groups"]
    optimizer.load_state_dict({"state": converted(state["state"]), "param_groups": groups})
    assert optimizer.param_groups[0]["lr"] == 0.1
    found = optimizer.state_dict()["state"]
    assert all(set(state["state"][i]) - {"step"} == set(found[i]) - {"step"} for i in range(2))
    for step in range(5, 20):
        give_gradients(mine, reference, step)
        optimizer.step()
        other.step()
    for p, q in zip(mine, reference, strict=True):
        agree(f"optim.{name}", p, q, terms=8 * 20)


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("max_norm", [0.0, 0.5, 1e3])
def test_clipping(max_norm, dtype, agree):
    mine, reference = pairs(dtype)
    give_gradients(mine, reference, 0)
    found = optim.clip_grad_norm_(mine, max_norm)
    expected = torch.nn.utils.clip_grad_norm_(reference, max_norm)
    agree("optim.clip_grad_norm_", found, expected)
    for p, q in zip(mine, reference, strict=True):
        assert (p.grad is None) == (q.grad is None)
        if p.grad is not None:
            agree("optim.clip_grad_norm_", p.grad, q.grad)


@pytest.mark.parametrize("dtype", list(FLOATS), ids=str)
@pytest.mark.parametrize("value", [0.0, 0.5, 1e3])
def test_clipping_by_value(value, dtype, agree):
    mine, reference = pairs(dtype)
    give_gradients(mine, reference, 0)
    optim.clip_grad_value_(mine, value)
    torch.nn.utils.clip_grad_value_(reference, value)
    for p, q in zip(mine, reference, strict=True):
        assert (p.grad is None) == (q.grad is None)
        if p.grad is not None:
            agree("optim.clip_grad_value_", p.grad, q.grad, terms=1)
