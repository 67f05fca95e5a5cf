"""The walk back: sums of branches, no aliasing, no recursion, nothing freed or changed unseen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gradcli import engine
from gradcli.errors import AutogradError, ShapeError


def leaf(*numbers: float) -> engine.Tensor:
    return engine.tensor(list(numbers), requires_grad=True)


def test_a_tensor_used_twice_gets_both_gradients() -> None:
    x = leaf(2.0, 3.0)
    (x * x).backward(engine.ones(2))
    assert x.grad is not None
    assert x.grad.tolist() == [4.0, 6.0]


def test_a_gradient_is_not_shared_by_two_leaves() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    start = engine.ones(2)
    (x + y).backward(start)
    assert x.grad is not None and y.grad is not None
    x.grad.fill_(9)
    assert y.grad.tolist() == [1.0, 1.0]
    assert start.tolist() == [1.0, 1.0]


def test_a_view_of_the_gradient_is_not_kept_by_a_leaf() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0)
    (x + y.expand(2)).backward(engine.ones(2))
    (x.reshape(2, 1) + engine.ones(2, 3)).backward(engine.ones(2, 3))
    assert x.grad is not None and y.grad is not None
    assert x.grad.tolist() == [4.0, 4.0]
    assert y.grad.tolist() == [2.0]


def test_y_is_x_plus_x_squared_at_2_has_slope_5() -> None:
    x = leaf(2.0)
    (x + x * x).backward()
    assert x.grad is not None
    assert x.grad.item() == 5.0


def test_ten_thousand_ops_go_back_without_recursion() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(10_000):
        y = y * 1.0 + 0.0
    y.backward()
    assert x.grad is not None
    assert x.grad.item() == 1.0


def test_gradients_add_up_over_calls_until_cleared() -> None:
    x = leaf(3.0)
    for _ in range(2):
        (x * 2).backward()
    assert x.grad is not None
    assert x.grad.item() == 4.0
    x.grad = None
    assert x.grad is None


def test_a_second_backward_needs_retain_graph() -> None:
    x = leaf(3.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad is not None
    assert x.grad.item() == 12.0
    with pytest.raises(AutogradError, match="mul: its graph was freed"):
        y.backward()


def test_a_saved_value_changed_in_place_is_noticed() -> None:
    x = leaf(3.0)
    factor = engine.tensor([2.0])
    y = x * factor
    factor.fill_(5)
    with pytest.raises(AutogradError, match="mul: a value kept for its gradient was changed"):
        y.backward()


def test_a_change_through_a_view_is_noticed_too() -> None:
    x = leaf(3.0, 4.0)
    factor = engine.tensor([2.0, 2.0])
    y = x * factor
    factor[1:].zero_()
    with pytest.raises(AutogradError, match="changed in place"):
        y.backward(engine.ones(2))


def test_no_grad_remembers_nothing() -> None:
    x = leaf(3.0)
    with engine.no_grad():
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad

    @engine.no_grad()
    def doubled() -> engine.Tensor:
        return x * 2

    assert not doubled().requires_grad
    with engine.no_grad(), engine.enable_grad():
        assert (x * 2).requires_grad


def test_integers_have_no_gradient() -> None:
    with pytest.raises(AutogradError, match="only float tensors"):
        engine.tensor([1, 2], requires_grad=True)
    x = leaf(1.0)
    assert not (x > 0).requires_grad
    assert not x.to(engine.int64).requires_grad


def test_backward_without_a_graph_or_a_number_is_refused() -> None:
    with pytest.raises(AutogradError, match="depends on nothing"):
        engine.ones(1).backward()
    with pytest.raises(AutogradError, match=r"shape \(2,\) is not one number"):
        leaf(1.0, 2.0).backward()
    with pytest.raises(ShapeError, match="gradient of shape"):
        leaf(1.0, 2.0).backward(engine.ones(3))


def test_writing_into_a_tensor_that_awaits_a_gradient_is_refused() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(AutogradError, match="no_grad"):
        x[0] = 5.0
    with pytest.raises(AutogradError, match="no_grad"):
        x.copy_(engine.zeros(2))
    with engine.no_grad():
        x[0] = 5.0
    assert x.tolist() == [5.0, 2.0]


def test_mixed_types_bring_the_gradient_back_in_the_leaf_s_type() -> None:
    x = leaf(1.5)
    (x * engine.tensor([2.0], dtype=engine.float64)).backward()
    assert x.grad is not None
    assert x.grad.dtype is engine.float32


def test_a_graph_is_freed_without_the_garbage_collector(allocated: Callable[[], int]) -> None:
    x = leaf(1.0, 2.0)
    before = allocated()
    for _ in range(5):
        y = (x * x + x) * 3.0
        y.backward(engine.ones(2))
        x.grad = None
    del y
    assert allocated() == before
