"""Hooks of tensors, retain_grad, and backward hooks of modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn
from gradcli.errors import AutogradError, DTypeError, ShapeError


def leaf(*numbers: float) -> engine.Tensor:
    return engine.tensor(list(numbers), dtype=engine.float64, requires_grad=True)


def grad_of(x: engine.Tensor) -> Any:
    assert x.grad is not None
    return x.grad.tolist()


# -- tensors ---------------------------------------------------------------------------------------


def test_a_hook_of_a_leaf_may_change_what_is_added() -> None:
    x = leaf(1.0, 2.0)
    x.register_hook(lambda grad: grad * 10)
    for _ in range(2):
        (x * 3).sum().backward()
    assert grad_of(x) == [60.0, 60.0]


def test_a_hook_in_between_sees_the_sum_of_all_uses_once() -> None:
    x = leaf(1.0, 2.0)
    seen = []
    y = x * 2
    y.register_hook(lambda grad: seen.append(grad.tolist()))
    (y * y + y).sum().backward()
    assert seen == [[5.0, 9.0]]
    assert grad_of(x) == [10.0, 18.0]


def test_hooks_run_in_the_order_in_which_they_came_until_they_are_removed() -> None:
    x = leaf(1.0)
    first = x.register_hook(lambda grad: grad + 1)
    x.register_hook(lambda grad: grad * 2)
    x.sum().backward()
    assert grad_of(x) == [4.0]
    first.remove()
    first.remove()
    x.sum().backward()
    assert grad_of(x) == [6.0]
    with x.register_hook(lambda grad: grad * 0):
        x.sum().backward()
    x.sum().backward()
    assert grad_of(x) == [8.0]


def test_a_retained_gradient_is_what_the_hooks_leave_and_adds_up() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    assert (y.retains_grad, x.retains_grad, y.is_leaf) == (True, False, False)
    y.register_hook(lambda grad: grad * 10)
    total = (y * y).sum()
    total.backward(retain_graph=True)
    assert grad_of(y) == [40.0, 80.0]
    total.backward()
    assert grad_of(y) == [80.0, 160.0]
    assert grad_of(x) == [160.0, 320.0]
    x.retain_grad()
    assert not x.retains_grad


def test_a_retained_gradient_can_be_differentiated_where_that_is_asked_for() -> None:
    x = leaf(3.0)
    y = x * x
    y.retain_grad()
    (y * y).backward(create_graph=True)
    assert y.grad is not None and y.grad.requires_grad
    (second,) = engine.grad(y.grad, x)  # d 2 x^2 / dx
    assert second is not None
    assert second.item() == 12.0


def test_one_output_of_several_has_a_hook_of_its_own() -> None:
    x = leaf(3.0, 1.0, 2.0)
    values, _ = x.max(0)
    low, high = engine.stack([x, x * 2]).unbind(0)
    high.register_hook(lambda grad: grad * 100)
    (low + high + values).sum().backward()
    assert grad_of(x) == [204.0, 201.0, 201.0]


def test_hooks_run_before_grad_takes_what_it_was_asked_for() -> None:
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda grad: grad * 5)
    of_y, of_x = engine.grad(y * 3, (y, x))
    assert of_y is not None and of_x is not None
    assert (of_y.item(), of_x.item()) == (15.0, 30.0)


def test_a_hook_may_keep_the_gradient_without_sharing_its_memory() -> None:
    x, kept = leaf(1.0, 2.0), []
    x.register_hook(lambda grad: kept.append(grad))
    x.sum().backward()
    assert x.grad is not None
    x.grad.zero_()
    assert kept[0].tolist() == [1.0, 1.0]


def test_a_hook_works_on_gradients_with_a_history_too() -> None:
    x = leaf(2.0)
    y = x * x
    y.register_hook(lambda grad: grad * 3)
    (first,) = engine.grad(y * y, x, create_graph=True)
    assert first is not None
    assert first.item() == 2 * 2.0 * 3 * (2 * 4.0)  # 2 x * 3 * 2 y
    (second,) = engine.grad(first, x)  # of 2 x: 2 * 3 * 2 y; by y: 2 x * 3 * 2, hooked again, * 2 x
    assert second is not None
    assert second.item() == 48.0 + 24.0 * 3 * 4.0


def test_a_hook_after_accumulation_is_given_the_tensor() -> None:
    x, seen = leaf(1.0), []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, grad_of(t))))
    for _ in range(2):
        (x * 2).backward()
    handle.remove()
    (x * 2).backward()
    assert seen == [(True, [2.0]), (True, [4.0])]


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda x: x.detach().register_hook(abs), AutogradError, "register_hook: this tensor does"),
        (lambda x: x.detach().retain_grad(), AutogradError, "retain_grad: this tensor does not"),
        (lambda x: x.register_hook(3), DTypeError, "a hook must be a function, got int"),
        (lambda x: (x * 2).register_post_accumulate_grad_hook(abs), AutogradError, "takes leaves"),
        (lambda x: (x.register_hook(lambda g: 3), x.backward()), DTypeError, "gave|give a Tensor"),
        (
            lambda x: (x.register_hook(lambda g: g.expand(2)), x.backward()),
            ShapeError,
            r"gave a gradient of gradcli.float64 \(2,\) for a tensor",
        ),
        (lambda x: x.backward(inputs=[x * 1]), AutogradError, "inputs must be leaves"),
    ],
)
def test_what_a_hook_cannot_do_is_refused_in_words(call: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        call(leaf(2.0))


def test_graphs_with_hooks_are_freed_without_the_garbage_collector(
    allocated: Callable[[], int],
) -> None:
    x = leaf(1.0, 2.0)
    before = allocated()
    y = x * x
    y.register_hook(lambda grad: grad * 2)
    y.retain_grad()
    y.sum().backward()
    x.grad = None
    del y
    assert allocated() == before


def test_a_captured_step_notices_that_the_hooks_of_a_leaf_changed() -> None:
    w = leaf(2.0)

    def step(x: engine.Tensor) -> engine.Tensor:
        w.grad = None
        y = w * x
        y.register_hook(lambda grad: grad + 1)
        y.retain_grad()
        y.sum().backward()
        assert y.grad is not None
        return y.grad

    fast = engine.capture(step)
    x = engine.tensor([3.0], dtype=engine.float64)
    for _ in range(3):
        assert fast(x).tolist() == [2.0]
        assert grad_of(w) == [6.0]
    handle = w.register_hook(lambda grad: grad * 10)
    for _ in range(3):
        fast(x)
        assert grad_of(w) == [60.0]
    handle.remove()
    fast(x)
    assert grad_of(w) == [6.0]
    assert len(fast.programs) == 2
    assert fast.fallback_reason == ""


# -- modules ---------------------------------------------------------------------------------------


def test_a_backward_hook_of_a_module_sees_and_changes_gradients() -> None:
    layer = nn.Linear(2, 3, bias=False).double()
    seen: list[Any] = []

    def doubled(module: Any, grad_input: Any, grad_output: Any) -> Any:
        seen.append((module is layer, len(grad_input), grad_output[0].tolist()))
        return (grad_input[0] * 2,)

    layer.register_full_backward_hook(doubled)
    x = engine.tensor([[1.0, 2.0]], dtype=engine.float64, requires_grad=True)
    layer(x).sum().backward()
    assert seen == [(True, 1, [[1.0, 1.0, 1.0]])]
    assert grad_of(x) == (layer.weight.detach().sum(0, keepdim=True) * 2).tolist()


def test_a_backward_pre_hook_changes_what_arrives_at_the_results() -> None:
    layer = nn.Linear(2, 1, bias=False).double()
    handle = layer.register_full_backward_pre_hook(lambda module, grads: (grads[0] * 3,))
    x = engine.tensor([[1.0, 2.0]], dtype=engine.float64)
    layer(x).sum().backward()
    assert grad_of(layer.weight) == [[3.0, 6.0]]
    handle.remove()
    layer.zero_grad()
    layer(x).sum().backward()
    assert grad_of(layer.weight) == [[1.0, 2.0]]


def test_arguments_without_a_gradient_show_as_none() -> None:
    layer = nn.Linear(2, 1)
    seen: list[Any] = []
    layer.register_full_backward_hook(lambda module, i, o: seen.append(i))
    layer(engine.ones(1, 2)).sum().backward()
    with engine.no_grad():
        layer(engine.ones(1, 2))
    assert seen == [(None,)]


def test_several_results_arrive_together() -> None:
    layer = nn.LSTM(2, 3)
    seen: list[Any] = []
    layer.register_full_backward_pre_hook(
        lambda module, grads: seen.append([None if g is None else g.shape for g in grads])
    )
    y, _ = layer(engine.ones(4, 1, 2))
    y.sum().backward()
    assert seen == [[(4, 1, 3)]]


def test_a_backward_hook_that_gives_the_wrong_thing_is_refused() -> None:
    x = engine.ones(1, 2).requires_grad_()
    for made, error, said in (
        (lambda g: (g[0], g[0]), ShapeError, "must give 1 gradient or None, it gave 2"),
        (lambda g: 3, DTypeError, "must give Tensors, got int"),
        (lambda g: g[0].sum(), ShapeError, r"gave a gradient of \(\) for \(1, 2\)"),
    ):
        layer = nn.Linear(2, 1)
        layer.register_full_backward_hook(lambda m, i, o, made=made: made(i))  # type: ignore[misc]
        with pytest.raises(error, match=said):
            layer(x).sum().backward()
