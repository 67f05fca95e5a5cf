"""Nothing passes a function of Python: no kernel call, and no pass that rewrites them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gradcli import engine
from gradcli.engine import nn, outside
from gradcli.engine.device.program import CallPlan
from gradcli.engine.dtype import float32
from gradcli.engine.program.record import Buffer, Call, View
from gradcli.engine.program.replay import Program
from gradcli.engine.program.schedule import waves
from tests.engine.program.replays import ALL, program

Step = Callable[..., Any]


def nothing() -> None:
    """Reads and writes nothing."""


def call(*reads: Buffer, writes: Sequence[Buffer] = (), function: Any = None) -> Call:
    """A call on whole buffers of four elements."""
    views = [View(buffer, 0, (4,), (1,), float32) for buffer in (*reads, *writes)]
    name = "" if function else "neg"
    inputs, outputs = tuple(views[: len(reads)]), tuple(views[len(reads) :])
    return Call(name, inputs, outputs, function=function)


def test_a_function_has_a_wave_of_its_own() -> None:
    """Of calls on other memory too: the two before it and the two behind it go together."""
    a, b, c, d, e = (Buffer(16, internal=True) for _ in range(5))
    calls = [
        call(a, writes=[b]),
        call(b, writes=[c]),
        call(function=nothing),
        call(a, writes=[d]),
        call(a, writes=[e]),
        call(function=nothing),
        call(function=nothing),
        call(a, writes=[b]),
    ]
    one_phase = CallPlan(1, (1,), 0, 0, 1)
    parts = waves(calls, [one_phase] * len(calls))
    assert [(part.call, part.wave) for part in parts] == [
        (0, 0),
        (1, 1),
        (2, 2),
        (3, 3),
        (4, 3),
        (5, 4),
        (6, 5),
        (7, 6),
    ]
    # A call of two phases is at its end before the function, and begins behind it.
    two_phases = CallPlan(2, (1, 1), 0, 0, 1)
    parts = waves(calls[:4], [two_phases, two_phases, one_phase, two_phases])
    assert [part.wave for part in parts] == [0, 1, 2, 3, 4, 5, 6]


def sections(made: Program) -> list[list[str]]:
    """The names of the calls before, between and behind the functions."""
    found: list[list[str]] = [[]]
    for one in made.calls:
        if one.function is not None:
            found.append([])
        else:
            found[-1].append(one.kernel)
    return found


class Cut:
    """Steps that passes would make smaller, if no function stood in their midst."""

    def __init__(self, cut: bool) -> None:
        engine.manual_seed(41)
        self.weight, self.bias = engine.rand(8, 6), engine.rand(6)
        self.total, self.seen = engine.zeros(40, 6), engine.zeros(40, 6)
        self.cut = cut

    def here(self) -> None:
        """The function's place."""
        if self.cut:
            outside.call(nothing, [self.seen], [self.seen])

    def chained(self, x: Any) -> Any:
        """Elementwise calls one after the other."""
        y = (x * 2).tanh()
        self.here()
        return y.exp() + 1

    def followed(self, x: Any) -> Any:
        """A product and the row behind it."""
        y = nn.functional.linear(x, self.weight.t(), self.bias)
        self.here()
        return y.relu()

    def copied(self, x: Any) -> Any:
        """A result that is copied to memory that outlives the step."""
        y = x[:, :6].matmul(self.weight[:6])
        self.here()
        self.total.copy_(y)
        return x.sum()

    def read_again(self, x: Any) -> Any:
        """A copy that is read in place of what was copied."""
        y = x.t().contiguous()
        self.here()
        return y.matmul(self.total)


@pytest.mark.parametrize(
    ("name", "whole", "parted"),
    [
        ("chained", ["chain"], [["chain"], ["chain"]]),
        ("followed", ["matmul_then"], [["matmul"], ["relu"]]),
        ("copied", ["matmul", "sum"], [["matmul"], ["copy", "sum"]]),
        ("read_again", ["matmul"], [["copy"], ["matmul"]]),
    ],
)
def test_no_pass_carries_a_call_past_it(
    name: str, whole: list[str], parted: list[list[str]]
) -> None:
    x = engine.rand(40, 8)
    assert sections(program(lambda: getattr(Cut(False), name), x)) == [whole]
    assert sections(program(lambda: getattr(Cut(True), name), x)) == parted


def test_all_sections_lie_in_one_arena() -> None:
    """The intermediates of a section lie where those of the one before it lay."""
    total = engine.zeros(64)

    def step(x: Any, times: int) -> Any:
        for i in range(times):
            if i:
                outside.call(nothing, [], [])
            total.add_((x @ x.t()).softmax(-1).sum(0))
        return total

    def fresh() -> Step:
        total.zero_()
        return step

    x = engine.rand(64, 5)
    sizes = [program(fresh, x, times).arena_bytes for times in (1, 2, 4)]
    assert sizes == [sizes[0]] * 3
    assert sizes[0] >= 64 * 64 * 4


def test_what_lives_on_behind_it_keeps_its_place() -> None:
    """A second section that needs as much memory does not take it."""
    total = engine.zeros(64, 64)

    def step(x: Any) -> Any:
        y = x @ x.t()
        outside.call(nothing, [], [])
        total.add_(((x * 2) @ x.t()).softmax(-1))
        return y.softmax(-1) + total

    def fresh() -> Step:
        total.zero_()
        return step

    assert program(fresh, engine.rand(64, 5)).arena_bytes >= 2 * 64 * 64 * 4


@pytest.mark.parametrize("passes", [(), *([name] for name in ALL), ALL])
def test_each_pass_leaves_it_in_its_place(passes: Sequence[str]) -> None:
    """With memory that the passes do not know to be the function's: nothing reads it too early."""
    hidden = engine.zeros(6, 6)
    seen, out = engine.zeros(6, 6), engine.zeros(6, 6)

    def double() -> None:
        hidden.copy_(seen * 2)
        out.add_(hidden)

    def step(x: Any) -> Any:
        seen.copy_((x * 3).exp() @ x)
        y = seen + x
        outside.call(double, [seen], [out])
        z = (out @ x + y).relu()
        seen.mul_(0.5)
        return z, y.tanh() * 2

    def fresh() -> Step:
        for tensor in (hidden, seen, out):
            tensor.zero_()
        return step

    made = program(fresh, engine.rand(6, 6), passes=passes)
    assert sum(one.function is not None for one in made.calls) == 1
