"""From times to rates: arithmetic that needs no clock."""

from __future__ import annotations

import itertools
import time

import pytest

from gradcli.bench import rates, timing
from gradcli.bench.ceilings import Ceilings

LIMITS = Ceilings(gflops=100.0, copies=((1 << 30, 10.0),), threads=1)


def test_rates_and_the_share_of_the_ceiling_that_binds() -> None:
    assert rates.of(0.002, flops=1e8, nbytes=1e6, ceilings=LIMITS) == {
        "ms": 2.0,
        "gflops": 50.0,
        "gbs": 0.5,
        "percent": 50.0,
        "bound": "compute",
    }
    assert rates.of(0.002, flops=0, nbytes=1e7, ceilings=LIMITS)["bound"] == "memory"


def test_no_work_has_no_rate() -> None:
    found = rates.of(0.001, flops=0, nbytes=0, ceilings=LIMITS)
    assert found == {"ms": 1.0, "gflops": None, "gbs": None, "percent": None, "bound": None}


def test_the_median_counts_and_not_the_slowest() -> None:
    found = timing.spread([0.001, 0.2, 0.001, 0.001, 0.003])
    assert (found.ms, found.low, found.high) == (1.0, 1.0, 3.0)
    assert timing.spread([0.002]) == timing.Spread(2.0, 2.0, 2.0, 1)


@pytest.mark.parametrize("times", [1, 10, 25])
def test_contenders_take_turns_and_are_measured_equally_often(times: int) -> None:
    order: list[tuple[str, int]] = []

    def contender(name: str) -> timing.Run:
        def run(count: int) -> None:
            order.append((name, count))
            time.sleep(count * timing.STRETCH)  # so that a measurement is one step

        return run

    found = timing.interleaved({name: contender(name) for name in "ab"}, times)
    assert {spread.measurements for spread in found.values()} == {times}
    names = [name for name, _ in order]
    turns = -(-times // timing.TURN)
    warm = timing.WARM_UP + 1
    assert names.count("a") == names.count("b") == warm + times + turns
    changes = sum(x != y for x, y in itertools.pairwise(names))
    assert changes == 1 + 2 * turns
    assert {count for _, count in order[2 * warm :]} == {1}


def test_a_measurement_of_short_steps_is_a_mean_of_many() -> None:
    counts: list[int] = []
    timing.interleaved({"a": counts.append}, times=2)
    assert counts[-2:] == [timing.LONGEST] * 2
