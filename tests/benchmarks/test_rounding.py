"""Rounding errors are counted in units in the last place, and a planted one is seen."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import rounding
from gradcli import engine
from gradcli.engine import gradcheck
from gradcli.engine.gradcheck import every_op

OPS = {op.name: op for op in every_op()}


def test_rounding_is_counted_in_units_of_the_last_place() -> None:
    worst = rounding.of_op(OPS["exp"], draws=2)
    assert worst is not None
    assert worst.elements > 0
    assert 0 < worst.each < 1.5
    assert rounding.ulp(1.0) == rounding.ulp(1.5) == 2.0**-23
    assert rounding.ulp(0.0) == rounding.ulp(1e-45) == 2.0**-149


@pytest.mark.parametrize(("error", "least"), [(2.0**-20, 7.0), (float("inf"), float("inf"))])
def test_a_planted_error_is_seen(
    error: float, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = gradcheck.call

    def wrong(op: Any, sample: Any, inputs: Any) -> Any:
        outputs = right(op, sample, inputs)
        return [y * (1 + error) if y.dtype is engine.float32 else y for y in outputs]

    monkeypatch.setattr(gradcheck, "call", wrong)
    worst = rounding.of_op(OPS["exp"], draws=1)
    assert worst is not None
    assert worst.each >= least
