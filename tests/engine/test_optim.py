"""Optimizers against their formulas in plain Python, and what they keep."""

from __future__ import annotations

import math

import pytest

from gradcli import engine
from gradcli.engine import nn, optim
from gradcli.errors import DTypeError, NumericsError, OptionError, ShapeError

START = [0.5, -1.25, 2.0]
GRADS = [[0.3, -0.2, 0.0], [0.1, 0.4, -0.7], [-0.6, 0.05, 0.2], [1.5, -2.0, 0.25]]


def parameter(numbers=START, dtype=engine.float64):
    return engine.tensor(numbers, dtype=dtype, requires_grad=True)


def run(optimizer, p, grads=GRADS):
    for grad in grads:
        p.grad = engine.tensor(grad, dtype=p.dtype)
        optimizer.step()
    return p.tolist()


def sgd(w, grads, lr, momentum=0.0, dampening=0.0, decay=0.0, nesterov=False, sign=1):
    m = None
    for grad in grads:
        g = sign * grad + decay * w
        if momentum:
            m = g if m is None else momentum * m + (1 - dampening) * g
            g = g + momentum * m if nesterov else m
        w -= lr * g
    return w


def adam(w, grads, lr, betas=(0.9, 0.999), eps=1e-8, decay=0.0, decoupled=False):
    m = v = 0.0
    for t, grad in enumerate(grads, 1):
        if decoupled:
            w *= 1 - lr * decay
        g = grad if decoupled else grad + decay * w
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        w -= lr * (m / (1 - betas[0] ** t)) / (math.sqrt(v / (1 - betas[1] ** t)) + eps)
    return w


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight_decay": 0.1},
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.3},
        {"momentum": 0.8, "nesterov": True, "weight_decay": 0.05},
        {"momentum": 0.9, "maximize": True},
    ],
    ids=str,
)
def test_sgd_follows_its_formula(options):
    p = parameter()
    found = run(optim.SGD([p], lr=0.1, **options), p)
    named = dict(options)
    plain = {"decay": named.pop("weight_decay", 0.0), "sign": -1 if named.pop("maximize", 0) else 1}
    expected = [sgd(w, [g[i] for g in GRADS], 0.1, **named, **plain) for i, w in enumerate(START)]
    assert found == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1}, {"betas": (0.5, 0.7), "eps": 0.1}])
@pytest.mark.parametrize("kind", [optim.Adam, optim.AdamW])
def test_adam_follows_its_formula(kind, options):
    p = parameter()
    found = run(kind([p], lr=0.1, **options), p)
    named = dict(options)
    decay = named.pop("weight_decay", 0.01 if kind is optim.AdamW else 0.0)
    expected = [
        adam(w, [g[i] for g in GRADS], 0.1, decay=decay, decoupled=kind is optim.AdamW, **named)
        for i, w in enumerate(START)
    ]
    assert found == pytest.approx(expected, rel=1e-13)


def test_the_table_has_every_optimizer():
    classes = [value for value in vars(optim).values() if isinstance(value, type)]
    kinds = {one for one in classes if issubclass(one, optim.Optimizer)} - {optim.Optimizer}
    assert set(optim.OPTIMIZERS.values()) == kinds
    assert all(kind.__name__.lower() == name for name, kind in optim.OPTIMIZERS.items())


def test_groups_have_options_of_their_own():
    a, b = parameter(), parameter()
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1)
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.5]
    for p in (a, b):
        p.grad = engine.ones(3, dtype=engine.float64)
    optimizer.step()
    assert a.tolist() == pytest.approx([w - 0.1 for w in START])
    assert b.tolist() == pytest.approx([w - 0.5 for w in START])
    c = parameter()
    optimizer.add_param_group({"params": [c], "weight_decay": 1.0})
    assert optimizer.param_groups[2]["weight_decay"] == 1.0


def test_a_changed_rate_holds_from_the_next_step_on():
    p = parameter([1.0])
    optimizer = optim.SGD([p], lr=0.1)
    run(optimizer, p, [[1.0]])
    optimizer.param_groups[0]["lr"] = 0.5
    assert run(optimizer, p, [[1.0]]) == pytest.approx([1 - 0.1 - 0.5])


def test_parameters_without_a_gradient_are_left_alone():
    p, q = parameter(), parameter()
    optimizer = optim.Adam([p, q])
    q.grad = engine.ones(3, dtype=engine.float64)
    optimizer.step()
    assert p.tolist() == START
    assert q.tolist() != START
    tensors = optimizer.state_tensors()
    assert (tensors["step.0"].item(), tensors["step.1"].item()) == (0, 1)


def test_a_step_is_a_change_in_place_that_backward_notices():
    p = parameter()
    y = (p * p).sum()
    p.grad = engine.ones(3, dtype=engine.float64)
    optim.SGD([p]).step()
    with pytest.raises(RuntimeError, match="changed in place"):
        y.backward()


def test_zero_grad_forgets_or_overwrites():
    p = parameter()
    optimizer = optim.SGD([p])
    p.grad = engine.ones(3, dtype=engine.float64)
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0, 0, 0]
    optimizer.zero_grad()
    assert p.grad is None


def test_an_empty_parameter_is_no_trouble():
    p = engine.zeros(0, 3, requires_grad=True)
    p.grad = engine.zeros(0, 3)
    for kind in optim.OPTIMIZERS.values():
        kind([p]).step()
    assert p.shape == (0, 3)


def test_nan_in_the_gradient_reaches_the_parameter():
    for kind in optim.OPTIMIZERS.values():
        p = parameter([START])
        run(kind([p]), p, [[[math.nan, 0.0, 1.0]]])
        others = issubclass(kind, optim.Muon)  # one norm scales the whole matrix
        assert [math.isnan(w) for w in p.tolist()[0]] == [True, others, others]


# -- state -------------------------------------------------------------------------------------


def test_state_exists_from_the_start_under_plain_names():
    p, q = parameter(), parameter([1.0])
    assert list(optim.SGD([p, q]).state_tensors()) == ["step.0", "step.1"]
    assert list(optim.SGD([p], momentum=0.9).state_tensors()) == ["step.0", "momentum_buffer.0"]
    tensors = optim.AdamW([p, q]).state_tensors()
    names = ("step", "exp_avg", "exp_avg_sq")
    assert list(tensors) == [f"{name}.{i}" for i in range(2) for name in names]
    assert tensors["exp_avg.1"].shape == (1,)
    assert all(tensor.tolist() in (0, [0], [0, 0, 0]) for tensor in tensors.values())


@pytest.mark.parametrize("name", list(optim.OPTIMIZERS))
def test_copied_state_goes_on_bit_for_bit(name):
    options = {"momentum": 0.9, "dampening": 0.1} if name == "sgd" else {}
    make = optim.OPTIMIZERS[name]
    grads = [[grad] for grad in GRADS]
    p = parameter([START], dtype=engine.float32)
    whole = make([p], lr=0.1, **options)
    run(whole, p, grads[:2])
    by_tensors = parameter(p.tolist(), engine.float32)
    by_dict = parameter(p.tolist(), engine.float32)
    first, second = make([by_tensors], lr=0.1, **options), make([by_dict])
    for key, tensor in first.state_tensors().items():
        tensor.copy_(whole.state_tensors()[key])
    if name == "sgd":
        second = make([by_dict], momentum=0.5)
    second.load_state_dict(whole.state_dict())
    expected = run(whole, p, grads[2:])
    assert run(first, by_tensors, grads[2:]) == expected
    assert run(second, by_dict, grads[2:]) == expected
    assert second.param_groups[0]["lr"] == 0.1


def test_state_dict_has_torchs_layout():
    p, q = parameter(), parameter()
    optimizer = optim.Adam([{"params": [p]}, {"params": [q], "lr": 0.5}])
    state = optimizer.state_dict()
    assert [group["params"] for group in state["param_groups"]] == [[0], [1]]
    assert state["param_groups"][1]["lr"] == 0.5
    assert set(state["state"]) == {0, 1}
    assert set(state["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}
    assert optimizer.state[q]["step"].item() == 0


def test_a_momentum_without_a_step_counts_as_begun():
    p = parameter([1.0])
    optimizer = optim.SGD([p], lr=0.1, momentum=0.9, dampening=0.5)
    optimizer.load_state_dict(
        {
            "state": {0: {"momentum_buffer": engine.tensor([2.0])}},
            "param_groups": [{"lr": 0.1, "params": [0]}],
        }
    )
    assert run(optimizer, p, [[1.0]]) == pytest.approx([1 - 0.1 * (0.9 * 2 + 0.5)])


def test_a_state_that_does_not_fit_changes_nothing():
    p = parameter()
    optimizer = optim.Adam([p], lr=0.1)
    state = optimizer.state_dict()
    with pytest.raises(OptionError, match=r"groups of \[1\] parameters, the state \[2\]"):
        optimizer.load_state_dict(optim.Adam([parameter(), parameter()]).state_dict())
    bad = {**state["state"][0], "step": engine.tensor(5.0), "exp_avg_sq": engine.zeros(4)}
    with pytest.raises(ShapeError, match=r"exp_avg_sq of parameter 0 has shape \(4,\)"):
        optimizer.load_state_dict({"state": {0: bad}, "param_groups": state["param_groups"]})
    groups = [{**state["param_groups"][0], "lr": -1.0}]
    with pytest.raises(OptionError, match="lr must be a number >= 0"):
        optimizer.load_state_dict({"state": {}, "param_groups": groups})
    assert optimizer.state_tensors()["step.0"].item() == 0
    assert optimizer.param_groups[0]["lr"] == 0.1


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda p: optim.SGD([p], lr=-1), "SGD: lr must be a number >= 0, got -1"),
        (lambda p: optim.SGD([p], lr=math.nan), "lr must be a number >= 0, got nan"),
        (lambda p: optim.SGD([p], momentum=-0.1), "momentum must be a number >= 0"),
        (lambda p: optim.SGD([p], nesterov=True), "nesterov needs momentum above 0"),
        (lambda p: optim.SGD([p], momentum=0.9, dampening=0.1, nesterov=True), "dampening 0"),
        (lambda p: optim.SGD([p], weight_decay=-1), "weight_decay must be a number >= 0"),
        (
            lambda p: optim.Adam([p], betas=(1.0, 0.9)),
            r"betas\[0\] must be a number in \[0, 1\)",
        ),
        (lambda p: optim.Adam([p], betas=0.9), "betas must be two numbers"),
        (lambda p: optim.Adam([p], eps=-1), "eps must be a number >= 0"),
        (lambda p: optim.AdamW([p], amsgrad=1), "AdamW: amsgrad must be True or False, got 1"),
        (lambda p: optim.Adadelta([p], rho=1.5), "Adadelta: rho must be a number from 0 to 1"),
        (lambda p: optim.Muon([p], ns_steps=100), "ns_steps must be a whole number from 0 to 99"),
        (lambda p: optim.Muon([p], ns_coefficients=(1, 2)), "ns_coefficients must be a tuple of 3"),
        (
            lambda p: optim.Muon([p], adjust_lr_fn="rms"),
            "'original' or 'match_rms_adamw', got 'rms'",
        ),
        (lambda p: optim.SGD([]), "got no parameters"),
        (lambda p: optim.SGD([p, p]), r"shape \(3,\) is given twice"),
        (lambda p: optim.SGD([p * 2]), "only leaves"),
        (lambda p: optim.SGD([engine.ones(2, 3).t()]), "contiguous float tensor"),
        (lambda p: optim.SGD([engine.tensor([1])]), "contiguous float tensor"),
        (lambda p: optim.SGD([{"params": [p], "rate": 1}]), "no option 'rate'; it has lr,"),
    ],
)
def test_impossible_options_are_refused(make, says):
    with pytest.raises(OptionError, match=says):
        make(parameter())


def test_what_is_no_list_of_tensors_is_refused():
    with pytest.raises(DTypeError, match="got one Tensor"):
        optim.SGD(parameter())
    with pytest.raises(DTypeError, match="must be a Tensor, got str"):
        optim.SGD(["weight"])
    with pytest.raises(DTypeError, match=r"got Linear; pass its parameters\(\)"):
        optim.SGD(nn.Linear(2, 2))
    with pytest.raises(DTypeError, match=r"got NoneType$"):
        optim.SGD(None)
    for state in (3, {}, {"state": {}}):
        with pytest.raises(DTypeError, match=r"takes what state_dict\(\) gives"):
            optim.SGD([parameter()], lr=1.0).load_state_dict(state)


def test_options_that_change_what_is_kept_are_refused():
    p = parameter()
    optimizer = optim.RMSprop([p])
    p.grad = engine.ones(3, dtype=engine.float64)
    optimizer.param_groups[0]["momentum"] = 0.9
    with pytest.raises(OptionError, match=r"has to keep \['square_avg', 'momentum_buffer'\]"):
        optimizer.step()


def test_muon_takes_matrices_alone():
    with pytest.raises(ShapeError, match=r"must be a matrix, got shape \(3,\)"):
        optim.Muon([parameter()])


@pytest.mark.parametrize("name", list(optim.OPTIMIZERS))
def test_captured_steps_are_the_eager_ones_bit_for_bit(name):
    found = []
    for eager in (False, True):
        p = engine.tensor([[0.5, -1.25, 2.0], [0.1, 0.2, 0.3]], requires_grad=True)
        optimizer = optim.OPTIMIZERS[name]([p], lr=0.1)

        def step(x, p=p, optimizer=optimizer):
            optimizer.zero_grad()
            loss = ((x * p).sin() * x).sum()
            loss.backward()
            optimizer.step()
            return loss

        captured = engine.capture(step, eager=eager)
        for i in range(6):
            optimizer.param_groups[0]["lr"] = 0.1 / (1 + i)
            captured(engine.full((2, 3), 0.3 * i + 0.1))
        assert eager or (captured.programs and not captured.fallback_reason)
        found.append([t.tolist() for t in (p, *optimizer.state_tensors().values())])
    assert found[0] == found[1]


# -- clipping ----------------------------------------------------------------------------------


def with_grads(*grads, dtype=engine.float32):
    made = []
    for grad in grads:
        p = engine.zeros(len(grad), dtype=dtype, requires_grad=True)
        p.grad = engine.tensor(grad, dtype=dtype)
        made.append(p)
    return made


def test_clipping_scales_all_gradients_by_one_factor():
    a, b = with_grads([3.0, 0.0], [0.0, 4.0, 12.0])
    grad = a.grad
    norm = optim.clip_grad_norm_([a, b], 1.0)
    assert norm.item() == 13
    factor = 1 / (13 + 1e-6)
    assert a.grad.tolist() == pytest.approx([3 * factor, 0])
    assert b.grad.tolist() == pytest.approx([0, 4 * factor, 12 * factor])
    assert grad.tolist() == a.grad.tolist()


def test_small_gradients_stay_bit_for_bit():
    (a,) = with_grads([0.1, 0.2])
    before = a.grad.tolist()
    optim.clip_grad_norm_([a], 1.0)
    assert a.grad.tolist() == before


def test_the_norm_is_added_up_in_double():
    (a,) = with_grads([1e-4] * 100_000 + [1e4])
    expected = math.sqrt(1e8 + 1e5 * 1e-8)
    assert optim.clip_grad_norm_(a, 1e9).item() == pytest.approx(expected, rel=1e-7)
    (b,) = with_grads([1e30, 1e30])
    assert optim.clip_grad_norm_(b, 1.0).item() == pytest.approx(math.sqrt(2) * 1e30)


def test_clipping_nothing_gives_0():
    assert optim.clip_grad_norm_([parameter()], 1.0).item() == 0
    assert optim.clip_grad_norm_([], 1.0).item() == 0


def test_a_norm_that_is_not_finite_is_said_or_spreads():
    (a,) = with_grads([math.inf, 1.0])
    with pytest.raises(NumericsError, match="norm of the gradients is inf"):
        optim.clip_grad_norm_([a], 1.0, error_if_nonfinite=True)
    assert a.grad.tolist() == [math.inf, 1]
    (b,) = with_grads([math.nan, 1.0])
    optim.clip_grad_norm_([b], 1.0)
    assert all(math.isnan(g) for g in b.grad.tolist())


def test_impossible_limits_are_refused():
    with pytest.raises(OptionError, match="max_norm must be a number >= 0"):
        optim.clip_grad_norm_([parameter()], -1.0)
    with pytest.raises(OptionError, match="norm_type"):
        optim.clip_grad_norm_([parameter()], 1.0, norm_type=-1)
