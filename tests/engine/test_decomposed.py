"""decomposed(): fused ops as simpler ones; test_ops checks for every op that values agree."""

from __future__ import annotations

import pytest

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.autograd import grad
from gradcli.engine.nn import functional as F
from gradcli.errors import RangeError, ShapeError


def names(x: engine.Tensor) -> set[str]:
    """Every op in the history of a tensor."""
    found: set[str] = set()
    waiting = [x.node]
    while waiting:
        node = waiting.pop()
        if node is not None:
            found.add(node.name)
            waiting += [p[0] for p in node.parents if p is not None and hasattr(p[0], "parents")]
    return found


def test_no_fused_op_is_left_in_a_composed_history() -> None:
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(8, 5), nn.LayerNorm(5), nn.Dropout(0.5), nn.LSTM(5, 3),
    )  # fmt: skip
    x = engine.randn(2, 1, 6, 6)
    with engine.decomposed():
        loss = F.cross_entropy(model(x)[0], engine.tensor([0, 2]))
    made = names(loss)
    assert made & {"mul", "add", "exp", "matmul", "tanh"}
    fused = {op.name for op in engine.op.declared_ops() if op.decomposition}
    assert made & fused == set()
    assert "linear" in names(model[5](engine.randn(2, 8)))


def test_it_ends_with_its_block_and_can_be_switched_off_inside() -> None:
    x = engine.randn(3).requires_grad_()
    with engine.decomposed():
        with engine.decomposed(False):
            assert names(F.softmax(x, 0)) == {"softmax"}
        assert "exp" in names(F.softmax(x, 0))
    assert names(F.softmax(x, 0)) == {"softmax"}

    @engine.decomposed()
    def normalised(x: engine.Tensor) -> engine.Tensor:
        return F.softmax(x, 0)

    assert "exp" in names(normalised(x))


def test_batch_norm_moves_its_statistics_there_too() -> None:
    x = engine.randn(6, 3)
    plain, decomposed = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    plain(x)
    with engine.decomposed():
        decomposed(x)
    assert decomposed.running_mean.tolist() == plain.running_mean.tolist()
    assert decomposed.running_var.tolist() == plain.running_var.tolist()


def test_dropout_draws_the_same_there() -> None:
    x = engine.randn(200)
    engine.manual_seed(5)
    wanted = F.dropout(x, 0.3), F.dropout(x, 0.3)
    engine.manual_seed(5)
    with engine.decomposed():
        found = F.dropout(x, 0.3), F.dropout(x, 0.3)
    assert [y.tolist() for y in found] == [y.tolist() for y in wanted]


def test_wrong_calls_are_refused_in_the_same_words() -> None:
    with engine.decomposed():
        with pytest.raises(ShapeError, match=r"mse_loss: input .* must have one shape"):
            F.mse_loss(engine.ones(3, 5), engine.ones(3))
        with pytest.raises(RangeError, match="cross_entropy: target"):
            F.cross_entropy(engine.ones(2, 3), engine.tensor([0, 3]))


def test_a_gradient_penalty_through_a_whole_network_equals_finite_differences() -> None:
    engine.manual_seed(3)
    model = nn.Sequential(
        nn.Conv1d(2, 3, 3), nn.BatchNorm1d(3), nn.Tanh(), nn.Flatten(), nn.Linear(12, 1)
    ).double()
    x = engine.randn(4, 2, 6, dtype=engine.float64)
    w = model[0].weight

    def penalty() -> engine.Tensor:
        given = x.clone().requires_grad_()
        with engine.decomposed():
            y = model(given).sum()
        (slope,) = grad(y, given, create_graph=True)
        assert slope is not None
        total: engine.Tensor = (((slope * slope).sum((1, 2)).sqrt() - 1) ** 2).mean()
        return total

    (of_w,) = grad(penalty(), w)
    assert of_w is not None
    numbers = w.detach().memoryview().cast("d")
    for i in range(0, w.numel(), 5):
        before = numbers[i]
        values = []
        for h in (1e-6, -1e-6):
            numbers[i] = before + h
            values.append(penalty().item())
        numbers[i] = before
        assert of_w.reshape(-1)[i].item() == pytest.approx(
            (values[0] - values[1]) / 2e-6, rel=1e-5, abs=1e-8
        )


def test_a_captured_step_knows_the_two_modes_apart() -> None:
    w = engine.randn(3).requires_grad_()
    fast = engine.capture(lambda x: F.softmax(x * w, 0))
    x = engine.randn(3)
    for _ in range(3):
        fast(x)
    with engine.decomposed():
        for _ in range(3):
            fast(x)
    assert len(fast.programs) == 2
