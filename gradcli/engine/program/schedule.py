"""Scheduling: which calls run at the same time.

A call begins in the first wave in which everything that it reads is written, and everything that
it overwrites is read. What a checkpoint computes again would be ready at once, and kept in vain:
it waits for the calls that come before it. A function of Python has a wave of its own: what comes
before it is finished then, and nothing behind it has begun.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from gradcli.dataclass import dataclass
from gradcli.engine.device.program import CallPlan
from gradcli.engine.program.record import Buffer, Call, View


@dataclass(frozen=True)
class Part:
    """A phase of a call, by number, and the wave in which it runs."""

    call: int
    phase: int
    wave: int


@dataclass
class _Uses:
    """Who used which bytes of a buffer: (low, high, last wave of the use, whether it wrote)."""

    list: list[tuple[int, int, int, bool]] = field(default_factory=list)

    def free_after(self, low: int, high: int, writes: bool) -> int:
        """The last wave that a use of these bytes must wait for; -1 for none."""
        return max(
            (
                wave
                for begin, end, wave, wrote in self.list
                if begin < high and low < end and (writes or wrote)
            ),
            default=-1,
        )

    def add(self, low: int, high: int, wave: int, writes: bool) -> None:
        """Enter a use; what it overwrites whole need not be remembered."""
        if writes:
            self.list = [use for use in self.list if use[0] < low or use[1] > high]
        self.list.append((low, high, wave, writes))


def waves(calls: Sequence[Call], plans: Sequence[CallPlan]) -> list[Part]:
    """The parts of a program, in rising waves.

    A call that writes nothing checks something: what comes behind it and is kept waits for it.
    """
    uses: dict[Buffer, _Uses] = {}
    parts = []
    last_check, last = -1, 0
    outside = -1  # the wave of the last function
    starts: dict[object, int] = {None: 0}  # when each run of a checkpoint's part may begin
    for number, (call, plan) in enumerate(zip(calls, plans, strict=True)):
        views = _touched(call)
        after = [uses[v.buffer].free_after(*v.extent, w) for v, w in views if v.buffer in uses]
        keeps = any(view.buffer.persistent for view in call.outputs)
        start = 1 + max((*after, last_check if keeps else -1, outside))
        run = next((view.buffer.rerun for view in call.outputs if view.buffer.rerun), None)
        start = max(start, starts.setdefault(run, last))
        if call.function is not None:
            outside = start = last + 1
        if not call.outputs:
            last_check = max(last_check, start + plan.phases - 1)
        parts += [Part(number, phase, start + phase) for phase in range(plan.phases)]
        end = start + max(plan.phases, 1) - 1
        last = max(last, end)
        for view, writes in views:
            uses.setdefault(view.buffer, _Uses()).add(*view.extent, end, writes)
    return _without_gaps(sorted(parts, key=lambda part: (part.wave, part.call)))


def _touched(call: Call) -> list[tuple[View, bool]]:
    views = [(view, False) for view in call.inputs] + [(view, True) for view in call.outputs]
    return [(view, writes) for view, writes in views if 0 not in view.shape]


def _without_gaps(parts: list[Part]) -> list[Part]:
    """Waves numbered from 0 on: calls without a phase leave gaps."""
    number = {wave: i for i, wave in enumerate(sorted({part.wave for part in parts}))}
    return [Part(part.call, part.phase, number[part.wave]) for part in parts]
