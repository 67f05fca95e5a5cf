"""The pass `constants`: what no step can change is computed once."""

from __future__ import annotations

from typing import Any

from replays import kernels, pure

from gradcli import engine

ONLY = ["constants"]
engine.manual_seed(6)
X = engine.randn(8)


def test_numbers_that_come_from_nothing_are_made_once() -> None:
    step = pure(lambda x: x + engine.arange(8).to(engine.float32).exp())
    assert kernels(step, X, passes=()) == ["arange", "copy", "exp", "add"]
    assert kernels(step, X, passes=ONLY) == ["add"]


def test_the_gradient_of_a_loss_begins_with_a_constant() -> None:
    def make() -> Any:
        w = engine.ones(8, requires_grad=True)

        def step(x: Any) -> Any:
            w.grad = None
            (w * x).sum().backward()
            return w.grad

        return step

    assert "fill" in kernels(make, X, passes=())
    assert "fill" not in kernels(make, X, passes=ONLY)


def test_what_is_written_again_returned_or_large_is_made_in_each_step() -> None:
    def written(x: Any) -> Any:
        y = engine.zeros(8)
        y += x
        return y * 2

    assert kernels(pure(written), X, passes=ONLY)[0] == "fill"
    assert kernels(pure(lambda x: (engine.zeros(8), x * 2)), X, passes=ONLY)[0] == "fill"
    assert kernels(pure(lambda x: x + engine.zeros(10_000, 8)), X, passes=ONLY)[0] == "fill"


def test_random_numbers_and_what_is_kept_are_no_constants() -> None:
    def make() -> Any:
        engine.manual_seed(3)
        w = engine.ones(8)

        def step(x: Any) -> Any:
            return x + engine.rand(8), w.exp()

        return step

    assert kernels(make, X, passes=ONLY) == ["uniform", "add", "exp"]
