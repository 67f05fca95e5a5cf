"""Where NaN and infinity began: layer, op and direction, and what is no beginning."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import Tensor, nn, observing
from gradcli.engine.autograd import Function
from gradcli.engine.nn import functional as F
from gradcli.engine.op import Op
from gradcli.engine.origins import Origin, Origins

BIG = 3e38


def origin_of(step: Callable[[Origins], Tensor], *leaves: Tensor) -> Origin | None:
    """Where the result's values began that are not finite, or else those of a gradient."""
    origins = Origins()
    with observing.by(origins):
        result = step(origins)
        if leaves:
            result.backward()
    found = origins.of(result.array)
    return found or origins.first(backward=True)


def test_the_first_call_that_makes_it_is_named_not_those_behind_it() -> None:
    x = engine.tensor([1.0, BIG, 2.0])

    def step(origins: Origins) -> Tensor:
        origins.enter("1 linear")
        y = x * 10.0
        origins.leave()
        origins.enter("2 softmax")
        y = F.softmax(y, 0)
        origins.leave()
        return y.sum()

    found = origin_of(step)
    assert found is not None
    assert (found.layer, found.op, found.backward) == ("1 linear", "mul", False)
    assert (found.count, found.size, found.already) == (1, 3, 0)
    assert found.largest == pytest.approx(BIG)
    assert not found.purpose


def test_a_mask_of_infinity_is_no_beginning() -> None:
    scores = engine.tensor([[1.0, 2.0], [BIG, 3.0]])
    hidden = engine.tensor([[False, True], [False, True]])

    def step(origins: Origins) -> Tensor:
        masked = scores.masked_fill(hidden, -math.inf)
        origins.enter("scores")
        grown = masked * 10.0
        origins.leave()
        return F.softmax(grown, 1).sum()

    found = origin_of(step)
    assert found is not None
    assert (found.layer, found.op, found.count) == ("scores", "mul", 3)


@pytest.mark.parametrize("given", ["written", "from outside"])
def test_nan_of_a_row_that_is_masked_whole_begins_in_the_softmax(given: str) -> None:
    scores = engine.tensor([[1.0, 2.0], [1.0, 3.0]])
    mask = engine.tensor([[0.0, 0.0], [-math.inf, -math.inf]])

    def step(_: Origins) -> Tensor:
        masked = scores + mask
        if given == "written":
            masked = scores.masked_fill(mask < 0, -math.inf)
        return F.softmax(masked, 1).sum()

    found = origin_of(step)
    assert found is not None
    assert (found.op, found.already, found.purpose) == ("softmax", 2, False)


def test_what_was_written_in_place_is_found_by_who_reads_it() -> None:
    def step(origins: Origins) -> Tensor:
        y = engine.tensor([1.0, BIG]) + 0.0
        y.mul_(10.0)
        origins.enter("reader")
        return y.exp().sum()

    found = origin_of(step)
    assert found is not None
    assert (found.layer, found.op, found.already) == ("reader", "exp", 1)
    assert not found.purpose


BACKWARD: dict[str, tuple[Callable[[Tensor], Tensor], list[float]]] = {
    "sqrt": (lambda x: x.sqrt(), [4.0, 0.0]),
    "log": (lambda x: x.log(), [1.0, 1e-39]),
    "div": (lambda x: 1e-30 / x, [1e-36, 1.0]),
    "pow": (lambda x: x.pow(0.5), [0.0, 1.0]),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_a_gradient_that_overflows_alone_is_of_the_way_back(name: str) -> None:
    function, values = BACKWARD[name]
    x = engine.tensor(values, requires_grad=True)

    def step(origins: Origins) -> Tensor:
        origins.enter("roots")
        y = function(x)
        origins.leave()
        origins.enter("after")
        y = y * 1.0
        origins.leave()
        return y.sum()

    found = origin_of(step, x)
    assert found is not None
    assert (found.layer, found.op, found.backward, found.count) == ("roots", name, True, 1)
    assert x.grad is not None
    assert not engine.isfinite(x.grad).all().item()


def test_gradients_that_overflow_where_they_meet() -> None:
    x = engine.tensor([1.0], requires_grad=True)

    def step(_: Origins) -> Tensor:
        y = x * 1.0
        return (y * BIG + (y - 1.0) * BIG).sum()

    found = origin_of(step, x)
    assert found is not None
    assert (found.op, found.backward, found.count) == ("add (gradients of mul)", True, 1)


def test_a_layer_is_known_on_the_way_back_by_a_function_of_the_users() -> None:
    class Steep(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2.0

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            return grad * math.inf

    x = engine.tensor([1.0], requires_grad=True)

    def step(origins: Origins) -> Tensor:
        origins.enter("own")
        y = Steep.apply(x)
        origins.leave()
        return y.sum()

    found = origin_of(step, x)
    assert found is not None
    assert (found.layer, found.op, found.backward) == ("own", "Steep", True)


def test_finite_steps_have_no_origin_and_ops_are_as_before_behind() -> None:
    plain = Op._call
    x = engine.tensor([1.0, 2.0], requires_grad=True)
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    assert origin_of(lambda _: model(x).sum() + F.softmax(x, 0).sum(), x) is None
    assert Op._call is plain
