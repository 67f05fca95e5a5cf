"""What the norm in the log costs: how a row comes about, and how it is judged."""

from __future__ import annotations

import pytest

from benchmarks import log_cost, shipped, tables, targets

ROW = {
    "parameters": 4,
    "log_every": 10,
    "stretch": 10,
    "step_ms": 0.6,
    "norm_us": 30.0,
    "share": 0.005,
    "ratio": 1.004,
    "low": 0.99,
    "high": 1.02,
    "cpu": 1.003,
    "pairs": 6,
}


def test_a_row_has_both_times_and_their_ratio() -> None:
    row = log_cost.measured(shipped.FOLDER / "penguins.yaml", pairs=2)
    assert row.keys() == ROW.keys() and row["pairs"] == 2
    assert row["share"] == pytest.approx(row["norm_us"] / 1e3 / row["step_ms"] / row["stretch"])
    assert row["low"] <= row["ratio"] <= row["high"]


def test_a_step_that_needs_the_norm_has_no_cost_of_its_own() -> None:
    row = log_cost.measured(shipped.FOLDER / "long" / "gpt2.yaml", pairs=2)
    assert row == {"missing": "its steps need the norm themselves"}
    assert log_cost.sentence(row) == row["missing"]


@pytest.mark.parametrize(
    ("change", "passed"),
    [
        ({}, True),
        ({"share": 0.03}, False),
        ({"share": 0.03, "step_ms": 0.4}, True),
        ({"share": 0.06, "step_ms": 0.4}, False),
    ],
)
def test_tiny_steps_may_give_more_of_their_time(change: dict[str, float], passed: bool) -> None:
    found = {"rows": {"one": {**ROW, **change}, "other": {"missing": "why"}}, "load": 1.0}
    (verdict,) = targets.VERDICTS["log"](found)
    assert verdict.passed is passed
    text = tables.TABLES["log"](found)
    assert "1.004 (0.990 to 1.02" in text and "| other | - |" in text
    assert log_cost.sentence(found["rows"]["one"]).startswith("step 0.")
