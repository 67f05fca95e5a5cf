"""Programs tell how long the gathering of samples kept their steps from going on."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from gradcli import engine
from gradcli.engine import Tensor, recording
from gradcli.engine.program.capture import Captured

ROWS, WIDTH = 2000, 300


@pytest.fixture(scope="module")
def stored() -> Tensor:
    engine.manual_seed(1)
    return engine.rand(ROWS, WIDTH)


def captured(stored: Tensor, *, marked: bool) -> Captured:
    weights = engine.rand(WIDTH, 4)

    def step(indices: Tensor) -> Tensor:
        with recording.sampling() if marked else nullcontext():
            rows = engine.index_select(stored, 0, indices)
        return (rows @ weights).sum()

    return engine.capture(step)


def order(steps: int, batch: int) -> Tensor:
    return engine.randint(0, ROWS, (steps, batch))


@pytest.mark.parametrize("batch", [1, 700])  # by one thread, and shared by all
def test_what_is_gathered_is_timed(stored: Tensor, batch: int) -> None:
    step, indices = captured(stored, marked=True), order(40, batch)
    step.scan(indices)
    [program] = step.programs
    first = program.sampling_seconds
    step.scan(indices)
    assert 0 < first < program.sampling_seconds


def test_the_clock_changes_no_bit_and_counts_nothing_else(stored: Tensor) -> None:
    indices = order(5, 64)
    engine.manual_seed(2)
    marked = captured(stored, marked=True)
    engine.manual_seed(2)
    plain = captured(stored, marked=False)
    assert marked.scan(indices).tolist() == plain.scan(indices).tolist()
    assert [program.sampling_seconds for program in plain.programs] == [0.0]


def test_samples_that_are_always_near_are_not_timed(stored: Tensor) -> None:
    step = captured(stored[:40].clone(), marked=True)
    step.scan(order(5, 8) % 40)
    assert [program.sampling_seconds for program in step.programs] == [0.0]


def test_more_threads_than_when_it_was_made(stored: Tensor) -> None:
    before = engine.get_num_threads()
    try:
        engine.set_num_threads(1)
        step, indices = captured(stored, marked=True), order(5, 700)
        alone = step.scan(indices).tolist()
        engine.set_num_threads(3)
        assert step.scan(indices).tolist() == alone
        assert step.programs[0].sampling_seconds > 0
    finally:
        engine.set_num_threads(before)


def test_a_refused_index_leaves_the_clocks_in_order(stored: Tensor) -> None:
    step, indices = captured(stored, marked=True), order(5, 700)
    step.scan(indices)
    bad = indices.clone()
    bad[2, 3] = ROWS
    assert step.steps(bad).done == 2
    before = step.programs[0].sampling_seconds
    step.scan(indices)
    assert step.programs[0].sampling_seconds > before
