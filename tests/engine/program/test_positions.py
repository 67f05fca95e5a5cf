"""PositionCapture: a step recorded at three positions of a sequence is replayed at all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import Tensor, outside
from gradcli.engine.device import cpu
from gradcli.engine.device.program import CallList, Compiled, Transfers, fields
from gradcli.engine.program.positions import PositionCapture
from gradcli.errors import GradcliError

LENGTH = 20


class Walk:
    """A position that the test sets."""

    stations = 1, 2, LENGTH - 1
    position = 4

    @contextmanager
    def visit(self, position: int) -> Iterator[None]:
        before, self.position = self.position, position
        try:
            yield
        finally:
            self.position = before


def replayed(
    make: Callable[[Walk, Tensor], Any], positions: list[int]
) -> tuple[list[list[float]], PositionCapture]:
    """What a step over rows of `memory` gives at these positions."""
    walk, memory = Walk(), engine.arange(LENGTH * 3.0).reshape(LENGTH, 3)
    captured = PositionCapture(lambda x: make(walk, memory) + x, walk)
    results = []
    for walk.position in positions:
        results.append(captured(engine.ones(3)).tolist())
    return results, captured


def test_rows_before_a_place_are_summed_at_every_place() -> None:
    positions = [4, 2, 19, 7, 1]
    results, captured = replayed(lambda walk, memory: memory[: walk.position].sum(0), positions)
    rows = [[3.0 * i + j for j in range(3)] for i in range(LENGTH)]
    assert results == [
        [sum(column[:p]) + 1 for column in zip(*rows, strict=True)] for p in positions
    ]
    assert len(captured.programs) == 1


def test_intermediates_grow_with_the_place() -> None:
    def doubled(walk: Walk, memory: Tensor) -> Tensor:
        return (memory[: walk.position].T.contiguous() * 2.0).sum(1)

    results, captured = replayed(doubled, [4, 19, 1, 12])
    assert [row[0] for row in results] == [3.0 * p * (p - 1) + 1 for p in (4, 19, 1, 12)]
    assert len(captured.programs) == 1


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (
            lambda walk, memory: memory[walk.position % 7],
            "does not grow evenly from position to position",
        ),
        (lambda walk, memory: memory[0] * float(walk.position), "that Python filled anew"),
        (
            lambda walk, memory: memory[0] if walk.position > 5 else -memory[0],
            "is another at other positions",
        ),
        (
            lambda walk, memory: memory[0] if walk.position < 9 else memory.sum(0),
            "other calls at other",
        ),
        (lambda walk, memory: memory[: walk.position], "other shapes at other positions"),
        (lambda walk, memory: memory[walk.position + 3], "at position 19: getitem: index 22"),
    ],
)
def test_what_is_not_even_stays_eager(make: Callable[[Walk, Tensor], Tensor], why: str) -> None:
    walk, memory = Walk(), engine.arange(LENGTH * 3.0).reshape(LENGTH, 3)
    captured = PositionCapture(lambda: make(walk, memory) + 0.0, walk)
    for walk.position in (4, 9, 15):
        assert captured().tolist() == (make(walk, memory) + 0.0).tolist()
    assert not captured.programs
    assert why in captured.fallback_reason


def test_a_function_of_python_keeps_it_eager() -> None:
    walk, sent = Walk(), engine.zeros(3)
    captured = PositionCapture(lambda: outside.call(lambda: None, [sent], []) or sent + 1.0, walk)
    assert captured().tolist() == [1.0] * 3
    assert "calls a function of Python" in captured.fallback_reason


def copying(size: int) -> tuple[Compiled, Tensor, Tensor]:
    """A program that copies two numbers of the first tensor to the second."""
    source, target = engine.arange(float(size)), engine.zeros(2)
    calls = CallList(1)
    blocks = [(cpu.address(t.array.storage), t.array.storage.nbytes) for t in (source, target)]
    calls.add("copy", [fields(*block, 0, (2,), (1,), engine.float32) for block in blocks], (), ())
    (plan,) = calls.plan()
    parts = [(0, phase, phase) for phase in range(plan.phases)]
    return Compiled(calls, parts, [], [(0, 0)]), source, target


def test_a_place_outside_of_memory_is_refused_before_anything_runs() -> None:
    program, _, target = copying(8)
    program.grow([(0, 0, 0, 1, 2)])
    for position, expected in [(0, [1.0, 2.0]), (2, [5.0, 6.0])]:
        program.move_to(position)
        program.replay(0, 1, Transfers(), Transfers())
        assert target.tolist() == expected
    for position in (3, 4, -1, 2**61):
        with pytest.raises(GradcliError):
            program.move_to(position)
    program.replay(0, 1, Transfers(), Transfers())
    assert target.tolist() == [5.0, 6.0]  # it stays at the last position that was right


@pytest.mark.parametrize("growth", [(1, 0, 0), (-1, 0, 0), (0, 2, 0), (0, 0, 17), (0, -1, 16)])
def test_numbers_that_no_call_has_are_refused(growth: tuple[int, int, int]) -> None:
    program, *_ = copying(8)
    program.grow([(*growth, 0, 1)])
    with pytest.raises(AssertionError, match="growths of"):
        program.move_to(0)
