"""The model of a step on ranks, and the reading of logs."""

from __future__ import annotations

import pytest

from benchmarks import ranks, ranks_model, targets

SUMS = [
    {"bytes": 1 << 10, "exact_ms": 0.02},
    {"bytes": 1 << 20, "exact_ms": 0.4},
    {"bytes": 1 << 26, "exact_ms": 32.02},
]


def test_a_step_is_its_share_of_work_and_a_sum() -> None:
    assert ranks_model.step_ms(10.0, 2, 2, 1 << 20, SUMS) == pytest.approx(5.4)
    assert ranks_model.step_ms(10.0, 4, 2, 1 << 20, SUMS) == pytest.approx(5.4)
    assert ranks_model.step_ms(10.0, 4, 8, 1 << 26, SUMS) == pytest.approx(2.5 + 32.02)


def test_a_sum_lies_between_those_that_were_measured() -> None:
    assert ranks_model.between(SUMS, 100) == 0.02
    assert ranks_model.between(SUMS, 1 << 15) == pytest.approx((0.02 * 0.4) ** 0.5)
    assert ranks_model.between(SUMS, 1 << 27) > 32.02


def test_many_ranks_send_the_bytes_of_a_ring() -> None:
    latency, speed = ranks_model.line_of(SUMS)
    assert (latency, speed) == (pytest.approx(0.02), pytest.approx((1 << 26) / 32))
    assert ranks_model.many_ms(1, 1 << 26, latency, speed) == 0
    assert ranks_model.many_ms(2, 1 << 26, latency, speed) == pytest.approx(32.04)
    small = ranks_model.many_ms(1024, 1 << 20, latency, speed)
    assert small == pytest.approx(20 * latency + 2 * 1023 / 1024 * (1 << 20) / speed)
    large = ranks_model.many_ms(1024, 1 << 26, latency, speed)
    assert large == pytest.approx(2046 * latency + 2 * 1023 / 1024 * (1 << 26) / speed)


def test_the_first_line_of_a_log_does_not_count() -> None:
    log = [
        {"event": "step", "step": 1, "seconds": 5.0},
        {"event": "step", "step": 50, "seconds": 6.0},
        {"event": "eval", "step": 60, "seconds": 7.0},
        {"event": "step", "step": 100, "seconds": 7.0},
        {"event": "step", "step": 150, "seconds": 8.5},
        {"event": "step", "step": 200, "seconds": 9.5},
    ]
    assert ranks.milliseconds(log) == pytest.approx(20.0)


def test_each_figure_of_ranks_has_its_verdict() -> None:
    steps = {
        "1 rank x 1 thread": 4.0,
        "1 rank x 2 threads": 2.0,
        "2 ranks x 1 thread": 2.5,
        "4 ranks x 1 thread": 4.0,
    }
    verdicts = targets.of_ranks(
        {
            "sums": [{"length": 10, "ms": {"exact": 1.6, "MPI_Allreduce": 1.0}}],
            "steps": {"mnist": steps, "mnist_cnn": steps},
            "model": {
                "mnist": {"2 ranks": 2.6, "4 ranks": 2.0},
                "mnist_cnn": {"2 ranks": 2.6, "4 ranks": 4.0},
            },
        }
    )
    assert [verdict.passed for verdict in verdicts] == [
        False,  # the sum
        True,
        True,
        False,  # mnist on 4 ranks takes twice what was predicted
        False,  # mnist_cnn may take 1.05 times as long
        True,
        True,
    ]
