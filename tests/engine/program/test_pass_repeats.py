"""The pass `repeats`: what stands in memory already is not computed again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from replays import kernels, program, pure

from gradcli import engine
from gradcli.engine import nn, outside
from gradcli.engine.device import cpu

ONLY = ["repeats"]
engine.manual_seed(7)
X = engine.randn(6, 10)


def counted(step: Callable[..., Any], kernel: str, *args: Any) -> int:
    return kernels(pure(step), *args, passes=ONLY).count(kernel)


def of_what_repeats(x: Any) -> Any:
    a = x.exp()
    b = a + 1.0
    return (x.exp() + 1.0) * a * b


def test_the_same_numbers_are_computed_once() -> None:
    assert counted(lambda x: x.exp() + x.exp() * x.exp(), "exp", X) == 1
    assert counted(of_what_repeats, "exp", X) == counted(of_what_repeats, "add", X) == 1
    assert counted(lambda x: x.t().contiguous() @ x.t().contiguous().t(), "copy", X) == 1


def test_other_numbers_are_not_taken_for_them() -> None:
    assert counted(lambda x: x.exp() + x[::2].exp().repeat(2, 1), "exp", X) == 2
    assert counted(lambda x: x.clamp(0.0, 1.0) + x.clamp(0.0, 2.0), "clamp", X) == 2
    assert counted(lambda x: x.bfloat16().float() + x.double().float(), "copy", X) == 4


def test_options_may_be_whole_numbers() -> None:
    def step(x: Any) -> Any:
        ones = [engine.full(x.shape, 1, dtype=x.dtype) for _ in range(2)]
        return (ones[0] + x) * (ones[1] + x)

    assert counted(lambda x: x.clamp(0, 1) + x.clamp(0, 1) * 2.0, "clamp", X) == 1
    program(pure(step), X, passes=ONLY)


@pytest.mark.parametrize("zeros", [(0.0, -0.0), (-0.0, 0.0)])
def test_the_sign_of_a_zero_counts(zeros: tuple[float, float]) -> None:
    def step(x: Any) -> Any:
        one, other = (1.0 / nn.functional.threshold(x, 0.5, zero) for zero in zeros)
        return one, other, one + other * 2.0

    program(pure(step), X, passes=ONLY)  # compares the bits


def test_what_is_written_between_is_computed_again() -> None:
    def step(x: Any) -> Any:
        y = x * 2.0
        first = y.exp()
        y += 1.0
        return first * y.exp(), first.sum()

    assert counted(step, "exp", X) == 2


def test_results_that_change_or_are_given_stay_apart() -> None:
    def step(x: Any) -> Any:
        first, second = x.exp(), x.exp()
        second += 1.0
        return first * second, x.tanh(), x.tanh()

    found = kernels(pure(step), X, passes=ONLY)
    assert (found.count("exp"), found.count("tanh")) == (2, 2)


def test_nothing_is_kept_for_it() -> None:
    """The first result has gone when the second is made."""
    assert counted(lambda x: x.exp().sum() * x.tanh().sum() + x.exp().sum(), "exp", X) == 2


def nothing() -> None:
    """Reads and writes nothing."""


def test_no_result_is_taken_from_the_other_side_of_a_function() -> None:
    def step(x: Any) -> Any:
        first = x.exp()
        outside.call(nothing, [], [])
        return first * x.exp() + first

    assert counted(step, "exp", X) == 2


def test_three_layers_share_one_rounded_input() -> None:
    layers = [nn.Linear(10, 4, bias=False) for _ in range(3)]

    def step(x: Any) -> Any:
        with engine.autocast():
            y = x.exp()
            a, b, c = (layer(y) for layer in layers)
        grads = engine.autograd.grad((a * b + c).float().sum(), [m.weight for m in layers])
        return a + b * c, *grads

    def roundings(passes: list[str]) -> int:
        made = program(lambda: step, X, passes=passes)
        shape = tuple(X.shape)
        return sum(
            call.kernel in ("copy", "bfloat16") and call.outputs[0].shape == shape
            for call in made.calls
        )

    if not cpu.multiplies_bfloat16():
        pytest.skip("here products widen what they read, and round what they write")
    assert (roundings([]), roundings(ONLY)) == (3, 1)
