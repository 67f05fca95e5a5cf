"""Quotients rounded to whole numbers, and the second operand of a sum times a number."""

from math import floor, trunc

import pytest

from gradcli import engine
from gradcli.errors import DTypeError, NumericsError

A, B = [7, -7, 7, -7, 6, 0], [2, 2, -2, -2, 3, 5]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize(("mode", "rounded"), [("trunc", trunc), ("floor", floor)])
def test_a_rounded_quotient_keeps_its_type(dtype: str, mode: str, rounded: object) -> None:
    kind = getattr(engine, dtype)
    a, b = engine.tensor(A, dtype=kind), engine.tensor(B, dtype=kind)
    y = engine.div(a, b, rounding_mode=mode)
    assert y.dtype is kind
    assert y.tolist() == [rounded(p / q) for p, q in zip(A, B, strict=True)]  # type: ignore[operator]
    assert a.div_(b, rounding_mode=mode).tolist() == y.tolist()


def test_without_a_mode_whole_numbers_give_floats() -> None:
    a, b = engine.tensor(A), engine.tensor(B)
    assert a.div(b, rounding_mode=None).tolist() == a.true_divide(b).tolist() == (a / b).tolist()


def test_the_gradient_of_a_rounded_quotient_is_0() -> None:
    for mode in ("trunc", "floor"):
        x = engine.tensor([[1.5, 2.5]], requires_grad=True)
        by = engine.tensor([[2.0], [0.4]], requires_grad=True)
        x.div(by, rounding_mode=mode).sum().backward()
        assert (x.grad.tolist(), by.grad.tolist()) == ([[0.0, 0.0]], [[0.0], [0.0]])


def test_whole_numbers_by_0_and_truths_are_refused() -> None:
    with pytest.raises(NumericsError, match="div: whole numbers cannot be divided by 0"):
        engine.tensor([1]).div(0, rounding_mode="trunc")
    with pytest.raises(DTypeError, match="div: truth values cannot be divided"):
        engine.tensor([True]).div(engine.tensor([True]), rounding_mode="floor")


def test_alpha_is_a_factor_of_the_second_operand() -> None:
    x = engine.tensor([1.0, 2.0], requires_grad=True)
    y = engine.tensor([3.0, 4.0], requires_grad=True)
    assert engine.add(x, y, alpha=2).tolist() == [7.0, 10.0]
    assert x.sub(1.0, alpha=0.5).tolist() == [0.5, 1.5]
    assert engine.rsub(x, y, alpha=3).tolist() == [0.0, -2.0]
    (x.add(y, alpha=2) - x.sub(y, alpha=-1)).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([0.0, 0.0], [1.0, 1.0])


def test_whole_numbers_take_a_whole_alpha_and_truths_none() -> None:
    whole = engine.tensor([1, 2])
    assert whole.add(whole, alpha=3).tolist() == [4, 8]
    with pytest.raises(DTypeError, match="add: alpha must be a whole number, got"):
        whole.add(whole, alpha=0.5)
    with pytest.raises(DTypeError, match="alpha must be 1 beside truth values, got 2"):
        engine.add(whole == 1, whole == 2, alpha=2)
