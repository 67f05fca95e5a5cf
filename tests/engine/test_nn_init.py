"""First values of weights: their distributions, and what is refused."""

from __future__ import annotations

import math

import pytest

from gradcli import engine
from gradcli.engine.nn import init
from gradcli.errors import OptionError, ShapeError

DRAWS = 100_000


def normal(x):
    return (1 + math.erf(x / math.sqrt(2))) / 2


def distance(values, below):
    """Kolmogorov and Smirnov: how far the shares of the draws are from the distribution's."""
    ordered = sorted(values)
    count = len(ordered)
    shares = [below(x) for x in ordered]
    return max(max((i + 1) / count - p, p - i / count) for i, p in enumerate(shares))


def even(a, b):
    return lambda x: (x - a) / (b - a)


def bell(std):
    return lambda x: normal(x / std)


def cut(mean, std, a, b):
    low, high = (normal((end - mean) / std) for end in (a, b))
    return lambda x: (normal((x - mean) / std) - low) / (high - low)


CASES = [
    (init.uniform_, {"a": -1.0, "b": 3.0}, even(-1, 3)),
    (init.normal_, {"std": 0.5}, bell(0.5)),
    (init.xavier_uniform_, {"gain": 2.0}, even(*(s * 2 * math.sqrt(6 / 1100) for s in (-1, 1)))),
    (init.xavier_normal_, {}, bell(math.sqrt(2 / 1100))),
    (init.kaiming_uniform_, {"mode": "fan_out"}, even(*(s * math.sqrt(6 / 100) for s in (-1, 1)))),
    (init.kaiming_normal_, {"nonlinearity": "tanh"}, bell(5 / 3 / math.sqrt(1000))),
    (init.trunc_normal_, {}, cut(0, 1, -2, 2)),
    (init.trunc_normal_, {"mean": 1.0, "a": 3.0, "b": 4.0}, cut(1, 1, 3, 4)),
]


@pytest.mark.parametrize(("fill", "options", "below"), CASES)
def test_100000_draws_have_the_distribution(fill, options, below):
    # A sample of another distribution, 3 % wider or higher, is further away than 0.0085, and one
    # in a million of the right one is.
    engine.manual_seed(3)
    weight = fill(engine.empty(100, 1000), **options)
    values = [x for row in weight.tolist() for x in row]
    assert distance(values, below) < 0.0085


def test_the_distance_finds_a_spread_that_is_3_percent_too_wide():
    engine.manual_seed(3)
    values = engine.empty(DRAWS).uniform_(-1.03, 1.03).tolist()
    assert distance(values, even(-1, 1)) > 0.0085


@pytest.mark.parametrize(("fill", "options", "below"), CASES[-2:])
def test_a_cut_distribution_stays_inside(fill, options, below):
    engine.manual_seed(3)
    weight = fill(engine.empty(400, 50, dtype=engine.float64), **options)
    assert options.get("a", -2.0) <= weight.min().item()
    assert weight.max().item() <= options.get("b", 2.0)


@pytest.mark.parametrize("shape", [(20, 50), (50, 20), (31, 31), (4, 5, 3, 2)])
def test_orthogonal_rows_or_columns(shape):
    weight = init.orthogonal_(engine.empty(*shape, dtype=engine.float64), gain=2.0)
    flat = weight.reshape(shape[0], -1)
    short = flat if flat.shape[0] <= flat.shape[1] else flat.t()
    gram = short @ short.t()
    assert (gram - 4 * engine.eye(short.shape[0], dtype=engine.float64)).abs().max().item() < 1e-13


def test_each_column_has_its_zeros():
    weight = init.sparse_(engine.empty(10, 6), sparsity=0.25, std=2.0)
    assert (weight == 0).sum(dim=0).tolist() == [3] * 6


def test_weights_that_need_a_gradient_are_filled_without_a_history():
    weight = engine.empty(4, 6, requires_grad=True)
    for fill in (init.orthogonal_, init.eye_, init.trunc_normal_, init.kaiming_normal_):
        assert fill(weight) is weight
        assert weight.is_leaf


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: init.eye_(engine.empty(3)), ShapeError, "eye_: the tensor must have 2 dim"),
        (lambda: init.dirac_(engine.empty(3, 3)), ShapeError, "must have 3 or 4 or 5 dimensions"),
        (
            lambda: init.dirac_(engine.empty(3, 3, 3), 2),
            OptionError,
            "must divide the first size 3",
        ),
        (lambda: init.sparse_(engine.empty(3, 3, 3), 0.1), ShapeError, "must have 2 dimensions"),
        (lambda: init.sparse_(engine.empty(3, 3), 1.5), OptionError, "from 0 to 1, got 1.5"),
        (lambda: init.orthogonal_(engine.empty(3)), ShapeError, "needs 2 or more dimensions"),
        (lambda: init.xavier_normal_(engine.empty(3)), ShapeError, "need 2 or more dimensions"),
        (lambda: init.trunc_normal_(engine.empty(3), a=2.0), OptionError, "a must be below b"),
        (
            lambda: init.kaiming_normal_(engine.empty(3, 3), mode="in"),
            OptionError,
            "kaiming_normal_: mode must be 'fan_in' or 'fan_out', got 'in'",
        ),
        (
            lambda: init.calculate_gain("swish"),
            OptionError,
            "nonlinearity must be one of leaky_relu, .* got 'swish'",
        ),
        (lambda: init.calculate_gain("leaky_relu", True), OptionError, "must be a number"),
    ],
)
def test_impossible_weights_are_refused(call, error, says):
    with pytest.raises(error, match=says):
        call()
