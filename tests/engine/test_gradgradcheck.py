"""Gradients of gradients: every op that claims them, against finite differences."""

from __future__ import annotations

import pytest

from gradcli import engine
from gradcli.engine import gradgradcheck, nn
from gradcli.engine.autograd import grad
from gradcli.engine.gradcheck import Row, call, every_op, make_inputs
from gradcli.engine.nn import functional as F
from gradcli.engine.op import Op, declared_ops
from gradcli.engine.sample import Sample
from gradcli.errors import AutogradError

CASES = [
    pytest.param(op, sample, id=f"{op.name}{sample}")
    for op in every_op()
    for sample in op.samples
    if op.differentiable
]


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_gradient_of_the_gradient_equals_finite_differences(op: Row, sample: Sample) -> None:
    assert [str(failure) for failure in gradgradcheck.check(op, sample)] == []


def test_every_gradient_is_made_of_ops_or_has_a_composed_form() -> None:
    opaque = [op for op in declared_ops() if op.differentiable and not op.double_backward_rule]
    assert [op.name for op in opaque if not op.decomposition] == []


SEVERAL = [
    pytest.param(case.values[0], case.values[1], id=case.id)
    for case in CASES
    if isinstance(case.values[0], Op)
    and case.values[1] is case.values[0].samples[0]
    and sum(one.kind not in ("index", "bool", "none") for one in case.values[1].inputs) > 1
]


def slopes_of_slopes(op: Op, sample: Sample, wanted: set[int]) -> dict[int, list[float]]:
    """Of the inputs at these places, all others being constants."""
    inputs = make_inputs(sample)
    leaves = {i: x.requires_grad_() for i, x in enumerate(inputs) if i in wanted and x is not None}
    with engine.decomposed(bool(op.decomposition)):
        y = call(op, sample, inputs)[0]
        first = grad((y * y * y).sum(), list(leaves.values()), create_graph=True)
    found = {}
    for (i, x), one in zip(leaves.items(), first, strict=True):
        assert one is not None
        (second,) = grad((one * one).sum(), x, retain_graph=True, allow_unused=True)
        found[i] = [] if second is None else second.reshape(-1).tolist()
    return found


@pytest.mark.parametrize(("op", "sample"), SEVERAL)
def test_inputs_that_are_constants_change_no_second_gradient(op: Op, sample: Sample) -> None:
    floats = {
        i for i, x in enumerate(make_inputs(sample)) if x is not None and x.is_floating_point()
    }
    together = slopes_of_slopes(op, sample, floats)
    for i in floats:
        assert slopes_of_slopes(op, sample, {i})[i] == pytest.approx(together[i], abs=1e-12)


def test_a_wrong_second_gradient_is_found() -> None:
    from gradcli.engine.array import Array
    from gradcli.engine.ops.elementwise.family import map_slope, map_unary
    from gradcli.engine.sample import sample

    def forward(x: Array) -> Array:
        return map_unary("sin", x)

    wrong = Op(forward, name="wrong", saves="x", samples=[sample((3,))])
    wrong.gradient(lambda grad, x: map_slope("sin", (), x, grad))
    wrong.double_backward(lambda grad, x: grad * x.detach().cos())
    assert [f.input for f in gradgradcheck.check(wrong, wrong.samples[0])] == ["x"]
    wrong.double_backward(lambda grad, x: grad * x.sin())
    assert {f.input for f in gradgradcheck.check(wrong, wrong.samples[0])} == {"x", "gradient 0"}


def test_an_op_without_a_second_gradient_says_how_to_get_one() -> None:
    x = engine.randn(5, 2, 3).requires_grad_()
    layer = nn.GRU(3, 4)
    with pytest.raises(AutogradError, match=r"gru_steps: .* under engine.decomposed\(\)"):
        grad(layer(x)[0].sum(), x, create_graph=True)
    with engine.decomposed():
        y = layer(x)[0]
    (first,) = grad((y * y * y).sum(), x, create_graph=True)
    assert first is not None
    assert grad(first.abs().sum(), x)[0] is not None


def test_third_derivatives_follow_from_the_second() -> None:
    x = engine.tensor([0.7], dtype=engine.float64, requires_grad=True)
    found = x.sin() * x.exp()
    expected = [
        lambda s, c, e: e * (s + c),
        lambda s, c, e: 2 * e * c,
        lambda s, c, e: 2 * e * (c - s),
        lambda s, c, e: -4 * e * s,
    ]
    s, c, e = (getattr(x.detach(), name)().item() for name in ("sin", "cos", "exp"))
    for value in expected:
        (made,) = grad(found, x, create_graph=True)
        assert made is not None
        found = made
        assert found.item() == pytest.approx(value(s, c, e), rel=1e-12)


def test_backward_with_create_graph_gives_leaves_gradients_with_a_history() -> None:
    x = engine.tensor([2.0], requires_grad=True)
    (x * x * x).backward(create_graph=True)
    first = x.grad
    assert first is not None and first.requires_grad
    assert first.item() == 12.0
    x.grad = None
    first.backward()
    assert x.grad is not None and not x.grad.requires_grad
    assert x.grad.item() == 12.0


def test_gradients_with_a_history_add_up() -> None:
    x = engine.tensor([2.0], requires_grad=True)
    for _ in range(2):
        (x * x).backward(create_graph=True)
    total = x.grad
    assert total is not None
    assert total.item() == 8.0
    (second,) = grad(total, x)
    assert second is not None
    assert second.item() == 4.0


def test_one_tensor_in_two_places_of_a_fused_op_counts_twice() -> None:
    x = engine.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=engine.float64, requires_grad=True)
    (first,) = grad(F.linear(x, x).sum(), x, create_graph=True)
    assert first is not None
    (second,) = grad((first * first).sum(), x)
    assert second is not None
    # sum(x x^T) = |s|^2 for s the sum of the rows: the gradient is 2 s in each row
    assert first.tolist() == [[8.0, 14.0], [8.0, 14.0]]
    assert second.tolist() == [[64.0, 112.0], [64.0, 112.0]]


def test_a_second_way_back_works_in_a_captured_step() -> None:
    w = engine.tensor([[0.3, -0.2]], dtype=engine.float64, requires_grad=True)

    def penalty(x: engine.Tensor) -> engine.Tensor:
        w.grad = None
        x = x.detach().requires_grad_()
        (slope,) = grad(F.linear(x, w).tanh().sum(), x, create_graph=True)
        assert slope is not None
        loss: engine.Tensor = (slope * slope).sum()
        loss.backward()
        assert w.grad is not None
        return w.grad

    fast = engine.capture(penalty)
    for i in range(4):
        x = engine.tensor([[0.1 * i, 0.5]], dtype=engine.float64)
        assert fast(x).tolist() == penalty(x).tolist()
    assert len(fast.programs) == 1
