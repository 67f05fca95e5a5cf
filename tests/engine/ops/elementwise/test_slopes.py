"""Slopes are read as C reads them: all rows, and random expressions."""

from __future__ import annotations

import math
import random
import re
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine.array import empty, run
from gradcli.engine.device.kernels import FACTS
from gradcli.engine.ops.elementwise.slopes import parsed, slope
from gradcli.engine.table import OPS

INFINITE = (math.inf, -math.inf)
NUMBERS = (-40.0, -3.0, -2.5, -1.0, -0.3, -0.0, 0.0, 0.1, 0.5, 1.0, 2.5, 3.0, 25.0, *INFINITE)
P, Q = 0.25, 1.5
UNARY = [name for name, facts in FACTS.items() if facts.saved]
BINARY = [name for name, facts in FACTS.items() if len(facts.slope) == 2]
# Its slope is a function of maths_loss.h that no op needs: its second gradient is that of simpler
# ops, as are those of the other losses but bce.
UNREADABLE = {"smooth_l1"}


def doubles(numbers: list[float]) -> Any:
    return engine.tensor(numbers, dtype=engine.float64)


def assert_near(result: list[float], expected: list[float], at: list[Any]) -> None:
    for a, b, where in zip(result, expected, at, strict=True):
        same = a == b or (math.isnan(a) and math.isnan(b))
        assert same or math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-14), (where, a, b)


@pytest.mark.parametrize("row", UNARY)
def test_the_text_of_a_unary_row_is_what_its_kernel_does(row: str) -> None:
    numbers = [*NUMBERS, math.nan]
    saved = doubles(numbers)
    if FACTS[row].saved == "y":
        saved, out = OPS["empty_like"](saved), None
        run(row, doubles(numbers).array, saved.array, options=(P, Q))
    out = OPS["empty_like"](saved)
    ones = OPS["ones_like"](saved)
    run(f"{row}_backward", saved.array, ones.array, out.array, options=(P, Q))
    result = slope(FACTS[row].slope[0], {FACTS[row].saved: saved, "p": P, "q": Q})
    result = result + 0.0 * ones if isinstance(result, engine.Tensor) else ones * result
    assert_near(result.tolist(), out.tolist(), numbers)


@pytest.mark.parametrize("row", sorted(set(BINARY) - UNREADABLE))
def test_the_text_of_a_binary_row_is_what_its_kernels_do(row: str) -> None:
    numbers = (-2.0, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 3.0)
    pairs = [(a, b) for a in numbers for b in numbers]
    if row.startswith("bce"):
        pairs = [(a, b) for a, b in pairs if 0 < a < 1 and 0 <= b <= 1]
    a, b = (doubles([pair[i] for pair in pairs]) for i in (0, 1))
    y, ones = OPS["empty_like"](a), OPS["ones_like"](a)
    run(row, a.array, b.array, y.array, options=(P, Q))
    for text, side in zip(FACTS[row].slope, "ab", strict=True):
        out = empty(a.shape, a.dtype)
        run(f"{row}_backward_{side}", a.array, b.array, y.array, ones.array, out, options=(P, Q))
        result = slope(text, {"a": a, "b": b, "y": y, "p": P, "q": Q}) * ones
        assert_near(result.tolist(), engine.Tensor(out).tolist(), pairs)


def test_what_is_not_read_is_the_slope_that_has_no_op() -> None:
    values = {"a": doubles([1.0]), "b": doubles([2.0]), "y": doubles([3.0]), "p": P, "q": Q}
    for row in UNREADABLE:
        with pytest.raises(Exception, match="smooth_l1_slope"):
            slope(FACTS[row].slope[0], values)


def expression(rng: random.Random, depth: int) -> tuple[str, str]:
    """An expression in C, and the same in Python."""
    kind = rng.randrange(8) if depth else rng.randrange(2)
    if kind == 0:
        return rng.choice([("2", "2.0"), ("R(0.75)", "0.75"), ("R(1.5e-1)", "1.5e-1")])
    if kind == 1:
        name = rng.choice("xpq")
        return name, name
    (a, own_a), (b, own_b) = expression(rng, depth - 1), expression(rng, depth - 1)
    if kind == 2:
        return f"-({a})", f"(-({own_a}))"
    if kind in (3, 4):
        sign = rng.choice("+-*")
        return f"({a}) {sign} {_factor(b)}", f"(({own_a}) {sign} ({own_b}))"
    if kind == 5:
        return f"m_tanh(x + {_factor(a)})", f"tanh(x + ({own_a}))"
    (c, own_c), sign = expression(rng, depth - 1), rng.choice(["<", ">", "<=", ">=", "==", "!="])
    test = f"{_factor(a)} {sign} {_factor(b)}"
    return f"({test} ? {a} : {c})", f"(({own_a}) if ({own_a}) {sign} ({own_b}) else ({own_c}))"


def _factor(text: str) -> str:
    return text if re.fullmatch(r"\w+", text) else f"({text})"


def test_random_expressions_are_read_as_python_reads_them() -> None:
    rng = random.Random(5)
    numbers = [-2.0, -0.5, 0.0, 0.75, 3.0]
    x = doubles(numbers)
    for _ in range(300):
        text, python = expression(rng, 3)
        result = slope(text, {"x": x, "p": P, "q": Q})
        expected = [
            float(eval(python, {"x": n, "p": P, "q": Q, "tanh": math.tanh})) for n in numbers
        ]
        result = (result * OPS["ones_like"](x)).tolist()
        for a, b in zip(result, expected, strict=True):
            assert math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12), (text, a, b)


def test_operators_bind_as_in_c() -> None:
    assert parsed("-y * y") == ("*", ("negative", "y"), "y")
    assert parsed("a - b - 1") == ("-", ("-", "a", "b"), 1.0)
    assert parsed("1 + x * y / 2") == ("+", 1.0, ("/", ("*", "x", "y"), 2.0))
    nested = ("?", ("<", "x", 1.0), 0.0, ("?", ("==", "x", "x"), 1.0, "x"))
    assert parsed("x < 1 ? 0 : x == x ? 1 : x") == nested
    assert parsed("a == 0 && b >= 0 || y != 1")[0] == "||"


@pytest.mark.parametrize(
    "text", ["x +", "(x", "x)", "x ? 1", "m_exp(x", "m_exp(x y)", "x $ y", "1 2", ")", ""]
)
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(AssertionError):
        parsed(text)


def test_a_branch_that_is_not_taken_has_no_slope_even_where_it_overflows() -> None:
    x = engine.tensor([-1.0, 0.5, 2000.0], requires_grad=True)
    y = slope("x > 0 ? 1 : p * m_exp(x * q)", {"x": x, "p": 1.0, "q": 1.0})
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [pytest.approx(math.exp(-1)), 0.0, 0.0]


def test_the_slope_of_a_size_is_0_at_0() -> None:
    x = engine.tensor([-2.0, 0.0, 3.0], requires_grad=True)
    slope("(x < 0 ? -x : x)", {"x": x}).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [-1.0, 0.0, 1.0]
