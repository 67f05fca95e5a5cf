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


LIMIT = 1 << 53  # doubles hold all whole numbers up to here
NEAR_LIMIT = [LIMIT + d for d in range(-3, 4)]
DIVIDENDS = {
    "small": list(range(-300, 300)),
    "quotients just below a whole number": [3 * q - 1 for q in NEAR_LIMIT[:3]] + [LIMIT - 2] * 300,
    "both sides of the limit": [sign * n for sign in (1, -1) for n in NEAR_LIMIT] * 40,
    "the ends of int64": [(1 << 63) - 1, -(1 << 63), -(1 << 63) + 1] * 100,
}


@pytest.mark.parametrize("case", DIVIDENDS)
@pytest.mark.parametrize("divisor", [1, -1, 2, 3, -7, 255, LIMIT - 1, LIMIT, -LIMIT - 1])
@pytest.mark.parametrize("repeat", [True, False], ids=["one divisor", "a divisor each"])
def test_divisions_of_int64_are_exact(case: str, divisor: int, repeat: bool) -> None:
    numbers = [n for n in DIVIDENDS[case] if not (divisor == -1 and n == -(1 << 63))]
    x = engine.tensor(numbers, dtype=engine.int64)
    by = engine.tensor([divisor] if repeat else [divisor] * len(numbers), dtype=engine.int64)
    assert (x // by).tolist() == [n // divisor for n in numbers]
    assert (x % by).tolist() == [n % divisor for n in numbers]
    rest = [abs(n) % abs(divisor) * (-1 if n < 0 else 1) for n in numbers]
    assert engine.fmod(x, by).tolist() == rest
