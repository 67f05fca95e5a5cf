"""The pass `chains`: elementwise calls that feed one another become one, where nobody can tell."""

from __future__ import annotations

from typing import Any

import pytest
from replays import ALL, kernels, program, pure

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.array import empty, run
from gradcli.engine.program import chain

ONLY = ["chains"]
engine.manual_seed(6)
X = engine.randn(37, 64)
Y = engine.rand(37, 64) + 0.5
ROW = engine.randn(64)
COLUMN = engine.randn(37, 1)


@pytest.mark.parametrize(
    "step",
    [
        lambda x: (x * 2).exp() + 1,
        lambda x: ((x + Y).tanh() * Y - x).clamp(-0.5, 0.25).sigmoid(),
        lambda x: (x * 2).exp() / ((x - 1).exp() + (x * Y).abs()),
        lambda x: (x + ROW).relu() * COLUMN,
        lambda x: (x * COLUMN + ROW).gelu(),
        lambda x: ((x.double() * 3).exp() - 1).sqrt(),
        lambda x: (x.reshape(-1) ** 2.0).exp(),
        lambda x: (x.abs() ** Y).log(),
        lambda x: (x - x.mean()) * (x.var() + 1e-5).rsqrt(),
    ],
)
def test_calls_that_feed_one_another_are_one(step: Any) -> None:
    plain, fused = kernels(pure(step), X, passes=()), kernels(pure(step), X, passes=ONLY)
    assert fused[-1] == "chain"
    assert len(fused) <= len(plain) - 1
    assert kernels(pure(step), X, passes=ALL)[-1] == "chain"


def test_what_only_the_chain_sees_is_not_in_memory() -> None:
    step = pure(lambda x: ((x * 2).exp() + 1).tanh())
    made = program(step, X, passes=ONLY)
    (call,) = made.calls
    assert made.arena_bytes == 0
    assert [view.numel > 0 for view in call.outputs] == [True, False, False]
    assert [s.kernel for s in chain.unpacked(call.sizes)] == ["mul", "exp", "add", "tanh"]


def test_what_others_read_too_is_written() -> None:
    def step(x: Any) -> Any:
        y = (x * 2).exp()
        return y, (y + 1).tanh(), y.sum()

    (call, total) = program(pure(step), X, passes=ONLY).calls
    assert (call.kernel, total.kernel) == ("chain", "sum")
    assert [view.numel > 0 for view in call.outputs] == [True, True, False]


def test_gradients_run_through_chains() -> None:
    def make() -> Any:
        engine.manual_seed(3)
        model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Sigmoid(), nn.GELU())

        def step(x: Any) -> Any:
            model.zero_grad()
            y = model(x)
            loss = ((y - Y).abs() / (y * y + 1)).mean()
            loss.backward()
            return loss, *(p.grad for p in model.parameters())

        return step

    plain, fused = kernels(make, X, passes=()), kernels(make, X, passes=ONLY)
    assert fused.count("chain") >= 2
    assert len(fused) < len(plain) - 8


def test_a_value_that_is_read_in_another_order_is_no_link() -> None:
    step = pure(lambda x: (x.exp().t().contiguous().exp(), x.tanh()[1:].tanh()))
    assert "chain" not in kernels(step, X, passes=ONLY)
    square = X[:32, :32].clone()
    assert kernels(pure(lambda x: (x * 2) + (x * 2).t()), square, passes=ONLY)[-1] != "chain"


def test_what_is_read_or_changed_in_between_stays_where_it_is() -> None:
    def read(x: Any) -> Any:
        y = x * 2
        z = y @ y.t()
        return (y + z.sum()).exp()

    assert kernels(pure(read), X, passes=ONLY)[:2] == ["mul", "matmul"]

    def make() -> Any:
        w = engine.ones(37, 64)

        def step(x: Any) -> Any:
            y = w * 2
            run("copy", x.array, w.array)
            return y.exp()

        return step

    assert kernels(make, X, passes=ONLY) == ["mul", "copy", "exp"]


def test_a_step_in_place_stays() -> None:
    def step(x: Any) -> Any:
        y = empty(x.shape, x.dtype)
        run("exp", x.array, y)
        run("neg", y, y)
        run("tanh", y, y)
        return engine.Tensor(y)

    assert kernels(pure(step), X, passes=ONLY) == ["exp", "neg", "tanh"]


def test_kept_memory_is_not_written_after_a_check() -> None:
    def make() -> Any:
        w = engine.ones(37, 64)

        def step(x: Any) -> Any:
            run("exp", x.array, w.array)
            engine.require_finite(x)
            return w + 1

        return step

    assert kernels(make, X, passes=ONLY) == ["exp", "require_finite", "add"]


def test_comparisons_whole_numbers_and_changes_of_type_are_no_links() -> None:
    step = pure(lambda x: ((x > 0).float(), x.double().float(), (x.long() + 1) * 2))
    assert "chain" not in kernels(step, X, passes=ONLY)


def test_short_rows_are_not_worth_a_chain() -> None:
    step = pure(lambda x: (x + engine.ones(5)).exp())
    assert kernels(step, engine.randn(400, 5), passes=["dead_calls", "chains"])[-1] == "exp"


def test_long_chains_are_cut_where_the_call_is_full() -> None:
    def step(x: Any) -> Any:
        for _ in range(20):
            x = (x * 0.5).sin()
        return x

    found = kernels(pure(step), X, passes=ONLY)
    assert found.count("chain") >= 3
    assert len(found) <= 6

    def wide(x: Any) -> Any:
        total = x
        for i in range(12):
            total = total + X[i : i + 1]
        return total

    assert kernels(pure(wide), X, passes=ONLY).count("chain") >= 3

    def options(x: Any) -> Any:
        for i in range(8):
            x = x.clamp(-1.0 - i, 1.0 + i)
        return x

    assert kernels(pure(options), X, passes=ONLY) == ["chain"] * 3


def test_a_result_takes_the_place_of_an_input_that_no_later_step_reads() -> None:
    def ends(x: Any) -> Any:
        y, z = x.sum(0), x.sum(1)
        a = x * y
        b = a @ engine.eye(64)
        return ((b + 1).exp() * 2).sum() + z.sum()

    def read_again(x: Any) -> Any:
        b = x @ engine.eye(64)
        c = (b + 1).exp()
        return (c @ c.t()).sum() + (c * b).sum()

    for step in (ends, read_again):
        program(pure(step), X, passes=ONLY)
    calls = program(pure(ends), X, passes=ONLY).calls
    assert "chain" in [call.kernel for call in calls]
