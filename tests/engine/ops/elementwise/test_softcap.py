"""Soft caps: the formula of Gemma 2, and their bounds."""

from __future__ import annotations

import math

import pytest

from gradcli import engine
from gradcli.engine import nn
from gradcli.engine.nn import functional as F
from gradcli.errors import OptionError

POINTS = [-1e4, -31.0, -2.5, -1e-3, 0.0, 0.7, 30.0, 500.0]


@pytest.mark.parametrize("cap", [0.5, 30.0])
def test_it_is_the_cap_times_tanh_of_the_input_over_the_cap(cap: float) -> None:
    x = engine.tensor(POINTS, dtype=engine.float64, requires_grad=True)
    y = F.softcap(x, cap)
    assert y.tolist() == pytest.approx([cap * math.tanh(p / cap) for p in POINTS], rel=1e-15)
    y.sum().backward()
    assert x.grad is not None
    slopes = [1 - math.tanh(p / cap) ** 2 for p in POINTS]
    assert x.grad.tolist() == pytest.approx(slopes, rel=1e-13, abs=1e-15)


def test_it_keeps_the_type_stays_within_the_cap_and_passes_nan_on() -> None:
    x = engine.tensor([math.inf, -math.inf, 3e38, math.nan])
    y = nn.SoftCap(30.0)(x)
    assert y.dtype == engine.float32
    assert y.tolist()[:3] == [30.0, -30.0, 30.0]
    assert math.isnan(y.tolist()[3])


def test_the_layer_takes_strided_input_and_shows_its_cap() -> None:
    layer = nn.SoftCap(2.0)
    x = engine.randn(5, 3).t()
    assert layer(x).tolist() == layer(x.clone().contiguous()).tolist()
    assert repr(layer) == "SoftCap(cap=2.0)"


@pytest.mark.parametrize("cap", [0.0, -1.0, math.inf, math.nan])
def test_a_cap_that_bounds_nothing_is_refused(cap: float) -> None:
    with pytest.raises(OptionError, match="SoftCap: cap must be a finite number above 0"):
        nn.SoftCap(cap)
    with pytest.raises(OptionError, match="softcap: cap must be a finite number above 0"):
        F.softcap(engine.ones(2), cap)
