"""Losses and norms beyond the samples: bad targets, ignored ones, probabilities, running values."""

from __future__ import annotations

import math

import pytest

from gradcli import engine
from gradcli.engine.array import empty, run
from gradcli.engine.dtype import float32
from gradcli.errors import GradcliError, OptionError, RangeError, ShapeError

LOGITS = [[0.5, -1.0, 2.0], [1.5, 0.0, -0.5], [0.0, 0.25, 1.0]]


def test_losses_are_what_the_formula_says() -> None:
    x, target = engine.tensor(LOGITS), [2, 0, 1]
    rows = [
        math.log(sum(map(math.exp, row))) - row[t] for row, t in zip(LOGITS, target, strict=True)
    ]
    found = engine.cross_entropy(x, engine.tensor(target), reduction="none").tolist()
    assert found == pytest.approx(rows, rel=1e-6)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("bad", [3, 12, -1, -99, 2**40])
def test_a_target_that_is_no_class_is_named(reduction: str, bad: int) -> None:
    target = engine.tensor([0, 2, bad])
    for loss in (engine.cross_entropy, engine.nll_loss):
        with pytest.raises(RangeError, match=rf"target {bad} at position 2 is outside 0\.\.2"):
            loss(engine.tensor(LOGITS), target, reduction=reduction)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_the_backward_kernel_checks_targets_by_itself(mode: int) -> None:
    x = engine.zeros((3, 3, 1)).array
    target = engine.tensor([0, 7, 1]).reshape(3, 1, 1).array
    none, stats, one = empty((0,), float32), empty((3, 2, 1), float32), empty((1,), float32)
    grad = empty((3, 1, 1) if mode == 0 else (1,), float32)
    out = empty((3, 3, 1), float32)
    with pytest.raises(RangeError, match="7 at position 1"):
        run("cross_entropy_backward", x, target, none, stats, one, grad, out, sizes=(mode, -100, 0))


def test_ignored_targets_count_neither_above_nor_below() -> None:
    x = engine.tensor(LOGITS, requires_grad=True)
    loss = engine.cross_entropy(x, engine.tensor([2, 9, 1]), ignore_index=9)
    rows = engine.cross_entropy(engine.tensor(LOGITS), engine.tensor([2, 0, 1]), reduction="none")
    assert loss.item() == pytest.approx((rows[0].item() + rows[2].item()) / 2)
    loss.backward()
    assert x.grad is not None
    assert x.grad[1].tolist() == [0, 0, 0]


def test_a_batch_of_ignored_targets_has_loss_nan_and_gradient_0() -> None:
    x = engine.tensor(LOGITS, requires_grad=True)
    loss = engine.cross_entropy(x, engine.tensor([-100, -100, -100]))
    assert math.isnan(loss.item())
    loss.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[0, 0, 0]] * 3


def test_logits_of_1000_give_a_finite_loss_and_gradient() -> None:
    x = engine.tensor([[1000.0, -1000.0], [-math.inf, 3.0]], requires_grad=True)
    loss = engine.cross_entropy(x, engine.tensor([1, 1]))
    loss.backward()
    assert loss.item() == 1000
    assert x.grad is not None
    assert x.grad.tolist() == [[0.5, -0.5], [0, 0]]


def test_one_hot_probabilities_are_class_numbers() -> None:
    x = engine.tensor(LOGITS)
    soft = engine.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    for options in ({}, {"reduction": "sum"}, {"label_smoothing": 0.2}, {"reduction": "none"}):
        hard = engine.cross_entropy(x, engine.tensor([2, 0, 1]), **options)
        found = engine.cross_entropy(x, soft, **options)
        assert found.reshape(-1).tolist() == pytest.approx(hard.reshape(-1).tolist(), rel=1e-6)


def test_probabilities_have_a_gradient_and_no_ignored_class() -> None:
    target = engine.full((3, 3), 1 / 3).requires_grad_()
    engine.cross_entropy(engine.tensor(LOGITS), target, reduction="sum").backward()
    assert target.grad is not None
    logs = engine.tensor(LOGITS).log_softmax(1)
    assert target.grad.tolist() == (-logs).tolist()
    with pytest.raises(OptionError, match="ignore_index is for class numbers"):
        engine.cross_entropy(engine.tensor(LOGITS), target, ignore_index=0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_weights_of_1_and_classes_that_are_no_neighbours_change_no_bit(
    smoothing: float, isa: str
) -> None:
    logits = engine.randn(7, 1003, generator=engine.Generator(1)) * 9
    logits[1, 4], logits[2, 0] = math.inf, math.nan
    target = engine.randint(1003, (7,), generator=engine.Generator(2))
    found = []
    for weight, apart in [(None, False), (engine.ones(1003), False), (None, True)]:
        x = logits.clone().requires_grad_()
        wide = engine.stack([x, x], 2) if apart else x
        targets = engine.stack([target, target], 1) if apart else target
        options = {"label_smoothing": smoothing, "reduction": "none"}
        loss = engine.cross_entropy(wide, targets, weight, **options)
        loss = loss[:, 1] if apart else loss
        loss.sum().backward()
        found.append((bytes(loss.contiguous().memoryview()), bytes(x.grad.memoryview())))
    assert found[0] == found[1] == found[2]


def test_mse_divides_forward_and_backward_by_the_same_number() -> None:
    x = engine.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    loss = engine.mse_loss(x, engine.zeros((2, 2)))
    loss.backward()
    assert loss.item() == 9.75
    assert x.grad is not None
    assert x.grad.tolist() == [[0.5, 1.0], [1.5, 2.5]]


def test_layer_norm_takes_torchs_order_and_names() -> None:
    x, w, b = engine.tensor(LOGITS), engine.tensor([1.0, 2.0, 3.0]), engine.ones((3,))
    wanted = engine.layer_norm(x, w, b, normalized_shape=(3,), eps=1e-3).tolist()
    assert engine.layer_norm(x, (3,), w, b, 1e-3).tolist() == wanted
    assert engine.layer_norm(x, [3], weight=w, bias=b, eps=1e-3).tolist() == wanted
    with pytest.raises(OptionError, match="layer_norm"):
        engine.layer_norm(x, 3, w, weight=w)


def test_batch_norm_moves_the_running_values_towards_mean_and_unbiased_variance() -> None:
    x = engine.tensor([[1.0, 10.0], [3.0, 10.0], [8.0, 10.0]])
    mean, var = engine.zeros((2,)), engine.ones((2,))
    engine.batch_norm(x, mean, var, training=True, momentum=0.5)
    assert mean.tolist() == [2, 5]
    assert var.tolist() == [0.5 + 0.5 * 13, 0.5]
    engine.batch_norm(x, mean, var)
    assert mean.tolist() == [2, 5]


def test_batch_norm_writes_through_a_strided_running_mean() -> None:
    whole = engine.zeros((4,))
    x = engine.tensor([[1.0, 10.0], [3.0, 10.0]])
    engine.batch_norm(x, whole[::2], engine.ones((2,)), training=True, momentum=1.0)
    assert whole.tolist() == [2, 0, 10, 0]


def test_batch_norm_of_an_empty_batch_leaves_the_running_values() -> None:
    mean, var = engine.zeros((3,)), engine.ones((3,))
    y = engine.batch_norm(engine.zeros((0, 3)), mean, var, training=True)
    assert y.shape == (0, 3)
    assert mean.tolist() == [0, 0, 0]
    assert var.tolist() == [1, 1, 1]


def test_batch_norm_of_one_value_for_each_channel_is_refused() -> None:
    with pytest.raises(GradcliError, match="more than 1 value for each channel"):
        engine.batch_norm(engine.zeros((1, 3)), None, None, training=True)


@pytest.mark.parametrize("shape", [(900, 4, 30), (300, 260), (3, 2, 20_000)])
def test_batch_norm_over_many_chunks_gives_mean_0_and_variance_1(shape: tuple[int, ...]) -> None:
    x = engine.tensor([math.sin(i * i) * 5 + 2 for i in range(math.prod(shape))]).reshape(shape)
    y = engine.batch_norm(x, None, None, training=True, eps=0.0)
    dims = tuple(d for d in range(len(shape)) if d != 1)
    assert y.mean(dims).tolist() == pytest.approx([0] * shape[1], abs=1e-5)
    assert y.var(dims, correction=0).tolist() == pytest.approx([1] * shape[1], rel=1e-5)


def test_layer_norm_adds_up_weight_gradients_over_many_rows() -> None:
    x = engine.tensor([math.sin(i * i) for i in range(7000 * 4)]).reshape(7000, 4)
    w, b = engine.ones((4,)).requires_grad_(), engine.zeros((4,)).requires_grad_()
    y = engine.layer_norm(x, 4, w, b)
    y.sum().backward()
    assert w.grad is not None
    assert b.grad is not None
    assert b.grad.tolist() == [7000] * 4
    assert w.grad.tolist() == pytest.approx(y.sum(0).tolist(), abs=1e-2)


def test_class_weights_for_probabilities_must_fit_the_classes() -> None:
    x, target = engine.zeros(2, 1), engine.ones(2, 1)
    with pytest.raises(ShapeError, match="does not hold 2"):
        engine.cross_entropy(x, target, engine.ones(2))
