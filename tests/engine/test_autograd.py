"""torch.autograd's words: grad, backward of several tensors, own Functions, anomalies."""

from __future__ import annotations

from typing import Any

import pytest

from gradcli import engine
from gradcli.engine.autograd import backward
from gradcli.errors import AutogradError, DTypeError, NumericsError, OptionError, ShapeError


def leaf(*numbers: float) -> engine.Tensor:
    return engine.tensor(list(numbers), dtype=engine.float64, requires_grad=True)


# -- grad ------------------------------------------------------------------------------------------


def test_grad_gives_gradients_and_leaves_every_leaf_alone() -> None:
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    of_x, of_w = engine.grad((x * w).sum(), (x, w))
    assert of_x is not None and of_w is not None
    assert (of_x.tolist(), of_w.tolist()) == ([3.0, 4.0], [1.0, 2.0])
    assert x.grad is None and w.grad is None
    assert not of_x.requires_grad


def test_grad_of_something_in_between_counts_all_its_uses() -> None:
    x = leaf(3.0)
    between = x * 2
    y = between * between + between
    assert [g.item() for g in engine.grad(y, [between]) if g is not None] == [13.0]


def test_grad_of_a_place_and_of_what_it_was_made_from_follows_both_ways() -> None:
    x = leaf(3.0)
    between = x * x
    found = engine.grad(between * x, (x, between))
    assert [g.item() for g in found if g is not None] == [27.0, 3.0]


def test_grad_goes_no_further_than_it_must() -> None:
    x = leaf(3.0)
    below = x * x
    y = below * 2
    engine.grad(y, below)
    below.backward()  # the graph of `below` was not freed
    assert x.grad is not None
    assert x.grad.item() == 6.0


def test_several_outputs_add_up_with_their_weights() -> None:
    x = leaf(2.0, 5.0)
    weights = [engine.tensor([1.0, 10.0], dtype=engine.float64), None]
    (found,) = engine.grad([x * x, x.sum()], x, weights)
    assert found is not None
    assert found.tolist() == [5.0, 101.0]
    backward([x * x, x.sum()], weights)
    assert x.grad is not None
    assert x.grad.tolist() == [5.0, 101.0]


def test_an_input_without_influence_is_refused_unless_allowed() -> None:
    x, other = leaf(2.0), leaf(1.0, 1.0)
    with pytest.raises(AutogradError, match="allow_unused=True"):
        engine.grad(x * 2, (x, other))
    assert engine.grad(x * 2, (x, other), allow_unused=True)[1] is None
    filled = engine.grad(x * 2, (x, other), materialize_grads=True)[1]
    assert filled is not None
    assert filled.tolist() == [0.0, 0.0]


def test_backward_with_inputs_leaves_other_leaves_alone() -> None:
    x, w = leaf(2.0), leaf(3.0)
    (x * w).backward(inputs=[w])
    assert x.grad is None and w.grad is not None
    assert w.grad.item() == 2.0


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: engine.grad(x * 2, engine.ones(1)), "does not ask for a gradient"),
        (lambda x: engine.grad(engine.ones(1), x), "depends on nothing"),
        (lambda x: engine.grad(x.expand(3), x), "grad: shape .3,. is not one number"),
        (lambda x: engine.grad(x * 2, x, engine.ones(2)), "grad: gradient of shape .2,."),
        (lambda x: engine.grad(x * 2, x, [None, None]), "2 gradients for 1 tensor"),
        (lambda x: engine.grad(3.0, x), "grad: outputs must be a Tensor"),
        (lambda x: (x * 2).backward(inputs=[x * 1]), "inputs must be leaves"),
    ],
)
def test_what_grad_cannot_do_is_refused_in_words(call: Any, said: str) -> None:
    with pytest.raises((AutogradError, ShapeError, OptionError, DTypeError), match=said):
        call(leaf(2.0))


# -- Function --------------------------------------------------------------------------------------


class Cube(engine.autograd.Function):
    """x^3, with what torch's tutorials do."""

    @staticmethod
    def forward(ctx: Any, x: engine.Tensor) -> engine.Tensor:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grads[0] * 3 * x * x


def test_an_own_function_has_its_own_gradient() -> None:
    x = leaf(2.0)
    y = Cube.apply(x)
    assert y.item() == 8.0
    assert y.node is not None and y.node.name == "Cube"
    y.backward()
    assert x.grad is not None
    assert x.grad.item() == 12.0


def test_an_own_function_can_be_differentiated_twice() -> None:
    x = leaf(2.0)
    (first,) = engine.grad(Cube.apply(x), x, create_graph=True)
    assert first is not None and first.requires_grad
    (second,) = engine.grad(first, x)
    assert second is not None
    assert second.item() == 12.0


class Scaled(engine.autograd.Function):
    """x * factor and a constant; keeps its own output."""

    seen: Any = None

    @staticmethod
    def forward(ctx: Any, x: engine.Tensor, factor: float) -> Any:
        y, rounded = (x * factor).exp(), x.floor()
        ctx.mark_non_differentiable(rounded)
        ctx.save_for_backward(y, None)
        ctx.factor = factor
        return y, rounded

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        y, nothing = ctx.saved_tensors
        assert nothing is None
        Scaled.seen = [None if g is None else g.tolist() for g in grads], ctx.needs_input_grad
        return grads[0] * y * ctx.factor, None


def test_an_output_can_be_kept_and_another_be_constant() -> None:
    x = leaf(0.5)
    y, rounded = Scaled.apply(x, 2.0)
    assert y.requires_grad and not rounded.requires_grad
    (first,) = engine.grad(y, x, create_graph=True)
    assert Scaled.seen == ([[1.0], [0.0]], (True, False))
    assert first is not None
    assert first.item() == pytest.approx(2 * 2.718281828459045)
    (second,) = engine.grad(first, x)
    assert second is not None
    assert second.item() == pytest.approx(4 * 2.718281828459045)


def test_an_own_function_notices_that_a_kept_value_was_overwritten() -> None:
    x, factor = leaf(2.0), leaf(3.0).detach()

    class Times(engine.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: engine.Tensor, b: engine.Tensor) -> engine.Tensor:
            ctx.save_for_backward(b)
            return a * b

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * ctx.saved_tensors[0], None

    y = Times.apply(x, factor)
    factor.fill_(0)
    with pytest.raises(AutogradError, match=r"Times: a value kept .* was changed in place"):
        y.backward()


def test_forward_may_leave_the_context_to_setup_context() -> None:
    class Double(engine.autograd.Function):
        @staticmethod
        def forward(x: engine.Tensor) -> engine.Tensor:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.factor = output.item() / inputs[0].item()

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * ctx.factor

    x = leaf(5.0)
    Double.apply(x).backward()
    assert x.grad is not None
    assert x.grad.item() == 2.0


@pytest.mark.parametrize(
    ("gives", "said"),
    [
        (lambda grad: (grad, grad), "Wrong: backward gave 2 gradients for 1 argument"),
        (lambda grad: (), "backward gave 0 gradients"),
        (lambda grad: grad.sum(), r"gave a gradient of \(\) for \(2,\)"),
        (lambda grad: 1.0, "must give Tensors or None, got float"),
    ],
)
def test_a_wrong_backward_is_refused_by_name(gives: Any, said: str) -> None:
    class Wrong(engine.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: engine.Tensor) -> engine.Tensor:
            return x * 1

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return gives(grads[0])

    with pytest.raises((OptionError, ShapeError, DTypeError), match=said):
        Wrong.apply(leaf(1.0, 2.0)).sum().backward()


def test_an_own_function_remembers_nothing_under_no_grad() -> None:
    with engine.no_grad():
        assert not Cube.apply(leaf(2.0)).requires_grad
    assert not Cube.apply(engine.ones(1)).requires_grad


def test_an_own_function_is_captured_with_the_ops_it_calls() -> None:
    w = leaf(2.0)

    def step(x: engine.Tensor) -> engine.Tensor:
        w.grad = None
        y = (Cube.apply(w) * x).sum()
        y.backward()
        assert w.grad is not None
        return w.grad

    fast = engine.capture(step)
    for number in (1.0, 2.0, 3.0, 4.0):
        assert fast(engine.tensor([number], dtype=engine.float64)).item() == 12.0 * number
    assert len(fast.programs) == 1


# -- anomalies -------------------------------------------------------------------------------------


def test_an_anomaly_names_the_op_whose_gradient_was_the_first_nan() -> None:
    x = leaf(0.0)
    with engine.detect_anomaly():
        y = (x.sqrt() * 0.0).exp()
        with pytest.raises(NumericsError, match="sqrt: its gradient gave NaN for input 0"):
            y.backward()
    (x.sqrt() * 0.0).backward()  # nobody looks
    assert x.grad is not None
