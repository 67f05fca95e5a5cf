"""Losses and slopes at the ends of their range: the limit, and all digits on the way there."""

from __future__ import annotations

import math
from math import inf

import pytest

from gradcli import engine
from gradcli.engine.dtype import DType
from gradcli.engine.nn import functional
from gradcli.engine.table import OPS
from gradcli.engine.tensor import Tensor
from gradcli.errors import DTypeError

FLOATS = [engine.float32, engine.float64]


def slope(y: Tensor, x: Tensor) -> list[float]:
    """The gradient of the sum."""
    y.sum().backward()
    assert x.grad is not None
    numbers: list[float] = x.grad.tolist()
    return numbers


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_infinite_logits_cost_nothing_or_infinity(dtype: DType) -> None:
    x = engine.tensor([inf, inf, inf, -inf, -inf, -inf], dtype=dtype)
    target = engine.tensor([0.0, 1.0, 0.5, 0.0, 1.0, 0.5], dtype=dtype)
    loss = functional.binary_cross_entropy_with_logits(x, target, reduction="none")
    assert loss.tolist() == [inf, 0, inf, 0, inf, inf]
    signs = engine.tensor([-1.0, 1, 1, -1, 1, 1], dtype=dtype)
    loss = functional.soft_margin_loss(x, signs, reduction="none")
    assert loss.tolist() == [inf, 0, 0, 0, inf, inf]
    assert functional.logsigmoid(x).tolist() == [0, 0, 0, -inf, -inf, -inf]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_nan_logit_or_target_stays_nan(dtype: DType) -> None:
    x = engine.tensor([math.nan, inf, 1.0], dtype=dtype)
    target = engine.tensor([1.0, math.nan, math.nan], dtype=dtype)
    loss = functional.binary_cross_entropy_with_logits(x, target, reduction="none")
    assert all(map(math.isnan, loss.tolist()))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_slopes_of_far_margins_keep_their_digits(dtype: DType) -> None:
    numbers = [10.0, 16.0, 17.0, 40.0, 80.0]
    x = engine.tensor(numbers, dtype=dtype, requires_grad=True)
    found = slope(functional.soft_margin_loss(x, OPS["ones_like"](x), reduction="none"), x)
    exact = [-1 / (1 + math.exp(v)) for v in numbers]
    assert found == pytest.approx(exact, rel=1e-6 if dtype is engine.float32 else 1e-14, abs=0)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_slopes_of_large_numbers(dtype: DType) -> None:
    numbers = [17.0, -1e4, 1e8, inf]
    x = engine.tensor(numbers, dtype=dtype, requires_grad=True)
    exact = [1 / (1 + abs(v)) ** 2 for v in numbers]
    near = 1e-6 if dtype is engine.float32 else 1e-14
    assert slope(functional.softsign(x), x) == pytest.approx(exact, rel=near, abs=0)
    x = engine.tensor([1e4, 1e30, inf], dtype=dtype, requires_grad=True)
    assert slope(functional.mish(x), x) == [1, 1, 1]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_angle_has_a_slope_wherever_it_is_a_number(dtype: DType) -> None:
    a = engine.tensor([0.0, 1e-25, 1e25], dtype=dtype, requires_grad=True)
    b = engine.tensor([0.0, 1e-25, 1e25], dtype=dtype)
    found = slope(engine.atan2(a, b), a)
    assert found == pytest.approx([0.0, 5e24, 5e-26], rel=1e-6, abs=0)


def test_norms_of_subnormal_numbers_have_a_slope() -> None:
    x = engine.tensor([1e-40] * 4, requires_grad=True)
    assert slope(x.norm(), x) == pytest.approx([0.5] * 4, rel=1e-4)


@pytest.mark.parametrize("include_self", [True, False])
def test_truths_are_reduced_as_truths(include_self: bool) -> None:
    x, index = engine.tensor([True, False, True]), engine.tensor([0, 1, 1])
    source = engine.tensor([False, True, True])
    expected = {
        "prod": [False, not include_self, True],
        "amin": [False, not include_self, True],
        "amax": [include_self, True, True],
    }
    for reduce, wanted in expected.items():
        y = engine.scatter_reduce(x, 0, index, source, reduce=reduce, include_self=include_self)
        assert y.tolist() == wanted
    with pytest.raises(DTypeError, match="scatter_reduce: truths cannot be added"):
        engine.scatter_reduce(x, 0, index, source, reduce="sum", include_self=include_self)
