"""Limits that are tensors: broadcast, mixed with numbers, NaN, ties, types."""

from math import isnan, nan

import pytest

from gradcli import engine
from gradcli.errors import AutogradError, OptionError, ShapeError

X = [-1.0, 0.5, 2.0]


def test_a_limit_is_a_number_or_a_tensor_and_both_go_together() -> None:
    low = engine.tensor([0.0, 1.0, 0.0])
    x = engine.tensor(X)
    assert x.clamp(low, 1.5).tolist() == [0.0, 1.0, 1.5]
    assert x.clamp(max=low).tolist() == [-1.0, 0.5, 0.0]
    assert x.clamp(-0.5, low).tolist() == [-0.5, 0.5, 0.0]
    assert x.clip(engine.tensor([[0.0], [1.0]])).tolist() == [[0.0, 0.5, 2.0], [1.0, 1.0, 2.0]]
    assert engine.clamp_min(x, low).tolist() == x.clamp(min=low).tolist()
    assert engine.clamp_max(x, 0.75).tolist() == [-1.0, 0.5, 0.75]


def test_max_wins_where_min_is_more() -> None:
    low, high = engine.full((3,), 1.0), engine.full((3,), 0.0)
    assert engine.tensor(X).clamp(low, high).tolist() == [0.0, 0.0, 0.0]


def test_nan_in_the_element_or_in_a_limit_gives_nan() -> None:
    found = engine.tensor([nan, 0.0, 0.0]).clamp(
        engine.tensor([0.0, nan, 0.0]), engine.tensor([1.0, 1.0, nan])
    )
    assert all(map(isnan, found.tolist()))


def test_the_element_that_equals_its_limit_gets_the_gradient() -> None:
    x = engine.tensor(X, requires_grad=True)
    low = engine.tensor([0.0, 0.5, 0.0], requires_grad=True)
    high = engine.tensor([1.0, 1.0, 2.0], requires_grad=True)
    x.clamp(low, high).sum().backward()
    assert [t.grad.tolist() for t in (x, low, high)] == [[0, 1, 1], [1, 0, 0], [0, 0, 0]]


def test_types_are_promoted_and_a_number_tensor_is_weak() -> None:
    whole = engine.tensor([1, 5])
    assert whole.clamp(engine.tensor([2, 2])).dtype is engine.int64
    assert whole.clamp(engine.tensor([2.5, 2.5])).tolist() == [2.5, 5.0]
    assert engine.tensor(X).clamp(engine.tensor(0.0, dtype=engine.float64)).dtype is engine.float32


def test_in_place_and_what_is_refused() -> None:
    x = engine.tensor(X)
    x.clamp_(engine.tensor([0.0, 1.0, 0.0]))
    x.clamp_max_(1.25)
    assert x.tolist() == [0.0, 1.0, 1.25]
    with pytest.raises(AutogradError, match="clamp_: no gradient passes"):
        x.clamp_(min=engine.tensor([0.0], requires_grad=True))
    with pytest.raises(ShapeError, match="clamp_: the result"):
        x.clamp_(min=engine.zeros(2, 1))
    with pytest.raises(OptionError, match="at least one of min and max"):
        x.clamp(None, None)
    with pytest.raises(TypeError, match="clamp_min: min must be a Tensor or a number, got '1'"):
        x.clamp_min("1")
