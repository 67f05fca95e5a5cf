"""The float32 maths of the kernels, against the C library's float64."""

from __future__ import annotations

import math
import struct
from array import array as packed
from collections.abc import Callable

import pytest

from gradcli import engine
from gradcli.engine.nn import functional as F

INF, NAN = math.inf, math.nan


def rounded(x: float) -> float:
    """The nearest float32."""
    return packed("f", [x])[0]


def unit_in_the_last_place(x: float) -> float:
    """The gap between float32 neighbours at x."""
    return math.ldexp(1.0, max(math.frexp(x)[1] - 24, -149))


def every(step: int) -> list[float]:
    """Floats from all over: every `step`-th bit pattern that is a number."""
    bits = struct.pack(f"{(1 << 32) // step + 1}I", *range(0, 1 << 32, step))
    return [x for x in packed("f", bits) if math.isfinite(x)]


def between(low: float, high: float, count: int) -> list[float]:
    return [rounded(low + (high - low) * i / count) for i in range(count + 1)]


def exp(x: float) -> float:
    return math.exp(x) if x < 709 else INF


def log(x: float) -> float:
    return math.log(x) if x > 0 else (-INF if x == 0 else NAN)


def expm1(x: float) -> float:
    return math.expm1(x) if x < 709 else INF


def log1p(x: float) -> float:
    return math.log1p(x) if x > -1 else (-INF if x == -1 else NAN)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else exp(x) / (1 + exp(x))


FUNCTIONS = [
    pytest.param("exp", exp, (-104.5, 89.0), id="exp"),
    pytest.param("log", log, (0.4, 3.0), id="log"),
    pytest.param("expm1", expm1, (-18.0, 5.0), id="expm1"),
    pytest.param("log1p", log1p, (-0.95, 2.0), id="log1p"),
    pytest.param("tanh", math.tanh, (-10.0, 10.0), id="tanh"),
    pytest.param("sigmoid", sigmoid, (-104.5, 20.0), id="sigmoid"),
    pytest.param("sin", math.sin, (-40.0, 40.0), id="sin"),
    pytest.param("cos", math.cos, (-40.0, 40.0), id="cos"),
    pytest.param("tan", math.tan, (-40.0, 40.0), id="tan"),
    pytest.param("atan", math.atan, (-10.0, 10.0), id="atan"),
]


def results(name: str, numbers: list[float]) -> list[float]:
    return getattr(engine, name)(engine.tensor(numbers)).tolist()


def worst(name: str, reference: Callable[[float], float], numbers: list[float]) -> float:
    """The largest error in units in the last place; inf where a special value differs."""
    largest = 0.0
    for x, y in zip(numbers, results(name, numbers), strict=True):
        wanted = reference(x)
        if math.isnan(wanted) or abs(wanted) > 3.40282356e38 or not math.isfinite(y):
            expected = wanted if math.isnan(wanted) else rounded(wanted)
            same = math.isnan(y) if math.isnan(expected) else y == expected
            largest = largest if same else INF
        else:
            largest = max(largest, abs(y - wanted) / unit_in_the_last_place(wanted))
    return largest


@pytest.mark.parametrize(("name", "reference", "dense"), FUNCTIONS)
def test_float_maths_is_within_2_units_in_the_last_place(
    name: str, reference: Callable[[float], float], dense: tuple[float, float], isa: str
) -> None:
    assert worst(name, reference, every(200_003)) <= 2
    assert worst(name, reference, between(*dense, 20_000)) <= 2


def gelu(x: float) -> float:
    return x * math.erfc(-x / math.sqrt(2)) / 2


def test_gelu_is_within_2_units_above_0(isa: str) -> None:
    assert worst("gelu", gelu, between(0, 8, 20_000)) <= 2


def test_gelu_keeps_five_digits_down_to_minus_5_and_vanishes_below(isa: str) -> None:
    numbers = between(-5, 0, 20_000)
    for x, y in zip(numbers, results("gelu", numbers), strict=True):
        assert math.isclose(y, gelu(x), rel_tol=1e-5)
    tail = [*between(-40, -5, 20_000), -1e4, -1e20, -3e38]
    for x, y in zip(tail, results("gelu", tail), strict=True):
        assert abs(y - gelu(x)) <= 2e-11
    assert results("gelu", [-100.0, -1e20]) == [0.0, 0.0]


def test_gelu_by_tanh_is_within_4_units_above_0(isa: str) -> None:
    def gelu_tanh(x: float) -> float:
        return x / (1 + math.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

    numbers = between(0, 8, 20_000)
    found = F.gelu(engine.tensor(numbers), approximate="tanh").tolist()
    for x, y in zip(numbers, found, strict=True):
        assert abs(y - gelu_tanh(x)) <= 4 * unit_in_the_last_place(gelu_tanh(x))


def test_softmax_is_within_4_units_down_to_the_smallest_normal_float(isa: str) -> None:
    numbers = between(-87, 0, 20_000)
    rows = engine.stack([engine.zeros(len(numbers)), engine.tensor(numbers)], dim=1)
    for x, (_, y) in zip(numbers, rows.softmax(1).tolist(), strict=True):
        wanted = math.exp(x) / (1 + math.exp(x))
        assert abs(y - wanted) <= 4 * unit_in_the_last_place(wanted)


def test_softmax_of_minus_infinity_is_0_and_keeps_nan(isa: str) -> None:
    row = [0.0] * 40 + [-INF, -1e38, -104.0]
    assert engine.tensor(row).softmax(0).tolist()[40:] == [0.0, 0.0, 0.0]
    for at in range(len(row)):
        eaten = engine.tensor([*row[:at], NAN, *row[at + 1 :]]).softmax(0).tolist()
        assert all(math.isnan(y) for y in eaten)


def signed(x: float) -> str:
    """A number as text, so that NaN equals NaN and 0.0 differs from -0.0."""
    return "nan" if math.isnan(x) else repr(x)


SMALLEST = 2.0**-149
SPECIAL = {
    "exp": [(NAN, NAN), (INF, INF), (-INF, 0.0), (-0.0, 1.0), (SMALLEST, 1.0), (88.8, INF),
            (-103.97, SMALLEST), (-103.98, 0.0), (-1e38, 0.0), (1e38, INF)],
    "log": [(NAN, NAN), (INF, INF), (-INF, NAN), (0.0, -INF), (-0.0, -INF), (-1.0, NAN),
            (1.0, 0.0), (-SMALLEST, NAN), (SMALLEST, rounded(math.log(SMALLEST)))],
    "tanh": [(NAN, NAN), (INF, 1.0), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0), (1e38, 1.0),
             (SMALLEST, SMALLEST), (-SMALLEST, -SMALLEST)],
    "sigmoid": [(NAN, NAN), (INF, 1.0), (-INF, 0.0), (0.0, 0.5), (-0.0, 0.5), (-1e38, 0.0),
                (1e38, 1.0), (-103.97, SMALLEST)],
    "gelu": [(NAN, NAN), (INF, INF), (0.0, 0.0), (-0.0, -0.0), (1e38, 1e38)],
    "sin": [(NAN, NAN), (INF, NAN), (-INF, NAN), (0.0, 0.0), (-0.0, -0.0), (SMALLEST, SMALLEST)],
    "cos": [(NAN, NAN), (INF, NAN), (-INF, NAN), (-0.0, 1.0), (SMALLEST, 1.0)],
    "tan": [(NAN, NAN), (INF, NAN), (-INF, NAN), (0.0, 0.0), (-0.0, -0.0), (SMALLEST, SMALLEST)],
    "atan": [(NAN, NAN), (INF, math.pi / 2), (-INF, -math.pi / 2), (0.0, 0.0), (-0.0, -0.0),
             (1.0, math.pi / 4), (SMALLEST, SMALLEST)],
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values_are_exact(name: str, isa: str) -> None:
    inputs = [x for x, _ in SPECIAL[name]]
    wanted = [signed(rounded(y)) for _, y in SPECIAL[name]]
    assert [signed(y) for y in results(name, inputs)] == wanted


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sigmoid", "gelu", "sin", "tan", "atan"])
def test_the_end_of_a_loop_gives_the_bits_of_its_vector_body(name: str, isa: str) -> None:
    numbers = between(0.01, 5, 100)
    whole = results(name, numbers)
    alone = [results(name, [x])[0] for x in numbers]
    assert alone == whole
    for length in range(1, 67):
        assert results(name, numbers[:length]) == whole[:length]


def multiples_of_a_quarter_turn() -> list[float]:
    """The floats beside them: there a sine or cosine is as small as it can be."""
    beside = (rounded(n * math.pi / 2) for n in range(1, 60_000, 7))
    return [x + k * unit_in_the_last_place(x) for x in beside for k in (-1, 0, 1)]


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_near_multiples_of_a_quarter_turn_keep_their_digits(name: str, isa: str) -> None:
    assert worst(name, getattr(math, name), multiples_of_a_quarter_turn()) <= 2


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_an_angle_has_the_same_bits_beside_a_far_one(name: str, isa: str) -> None:
    near = between(-99_000, 99_000, 300)
    alone = engine.tensor(near).requires_grad_()
    beside = engine.tensor([*near[:150], 3e38, *near[150:]]).requires_grad_()
    for x in (alone, beside):
        getattr(engine, name)(x).sum().backward()
    assert alone.grad is not None
    assert beside.grad is not None
    values, slopes = results(name, beside.tolist()), beside.grad.tolist()
    assert values[:150] + values[151:] == results(name, near)
    assert slopes[:150] + slopes[151:] == alone.grad.tolist()


def power(x: float, y: float) -> float:
    """x^y as C has it, where Python raises."""
    try:
        return math.pow(x, y)
    except OverflowError:
        return -INF if x < 0 and y % 2 == 1 else INF
    except ValueError:
        if x:
            return NAN
        return math.copysign(INF, x) if y % 2 == 1 else INF


SPECIAL_POWERS = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 2.5, -2.5]
SPECIAL_POWERS += [INF, -INF, NAN, rounded(1e38), SMALLEST, rounded(1e-40), 16777215.0, 5e8]


def worst_power(xs: list[float], ys: list[float]) -> float:
    largest = 0.0
    for x, y, z in zip(xs, ys, (engine.tensor(xs) ** engine.tensor(ys)).tolist(), strict=True):
        exact = power(x, y)
        if math.isnan(exact) or abs(exact) > 3.40282356e38 or exact == 0:
            exact = exact if math.isnan(exact) or exact == 0 else math.copysign(INF, exact)
            largest = largest if signed(z) == signed(exact) else INF
        else:
            largest = max(largest, abs(z - exact) / unit_in_the_last_place(exact))
    return largest


def test_powers_are_within_1_unit_in_the_last_place(isa: str) -> None:
    bases = [rounded(math.exp(x)) for x in between(-80, 80, 9973)]
    assert worst_power(bases, between(-3, 3, 9973)) <= 1
    pairs = [(x, y) for x in SPECIAL_POWERS for y in SPECIAL_POWERS]
    assert worst_power([x for x, _ in pairs], [y for _, y in pairs]) <= 1


@pytest.mark.parametrize("exponent", SPECIAL_POWERS)
def test_one_exponent_for_all_gives_the_bits_of_one_each(exponent: float, isa: str) -> None:
    numbers = [*between(-3, 3, 200), *SPECIAL_POWERS]
    each = engine.full((len(numbers),), exponent)
    x, y = (engine.tensor(numbers).requires_grad_() for _ in range(2))
    one, many = x**exponent, y**each
    (one.sum() + many.sum()).backward()
    assert list(map(signed, one.tolist())) == list(map(signed, many.tolist()))
    assert x.grad is not None
    assert y.grad is not None
    assert list(map(signed, x.grad.tolist())) == list(map(signed, y.grad.tolist()))
