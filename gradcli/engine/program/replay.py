"""A program: calls with a place for everything they touch, ready to be replayed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from gradcli.engine.array import Array
from gradcli.engine.device import cpu
from gradcli.engine.device.program import CallList, CallPlan, Compiled, Wires
from gradcli.engine.program import plan, schedule
from gradcli.engine.program.record import Buffer, Call, Recording
from gradcli.engine.recording import Varying
from gradcli.errors import GradcliError

STRETCH_SECONDS = 0.1
NOTHING = Wires()
_PAGE = 4096


class Program:
    """A recorded step that runs without Python.

    Attributes:
        calls: what it does, after all passes.
        arena_bytes: memory of its intermediates, all allocated before the first step.
        waves: how many times the threads wait for one another in a step.
    """

    def __init__(self, calls: Sequence[Call], recording: Recording) -> None:
        self.calls = list(calls)
        listed = CallList(len(self.calls))
        self._write(listed, _imagined(self.calls))
        self.plans: list[CallPlan] = listed.plan()
        parts = schedule.waves(self.calls, self.plans)
        self.waves = parts[-1].wave + 1 if parts else 0
        self.layout = plan.layout(self.calls, self.plans, parts)
        self.arena_bytes = self.layout.nbytes
        self._arena = cpu.allocate(self.arena_bytes)
        self._move(listed)
        start = cpu.address(self._arena)
        scratch = [
            (start + self.layout.scratch.get(i, 0), p.shared_bytes)
            for i, p in enumerate(self.plans)
        ]
        triples = [(part.call, part.phase, part.wave) for part in parts]
        self._compiled = Compiled(listed, triples, scratch)
        self._varying: list[Varying] = [source for _, source in recording.varying.values()]
        self._recording = recording  # holds what the varying numbers and assumptions belong to

    def _write(self, listed: CallList, address: dict[Buffer, int]) -> None:
        for call in self.calls:
            tensors = [
                (
                    cpu.pointer(address[v.buffer]),
                    v.buffer.nbytes,
                    v.offset,
                    v.dtype.code,
                    len(v.shape),
                    v.shape,
                    v.strides,
                )
                for v in call.views
            ]
            listed.add(call.kernel, tensors, call.sizes, call.options)

    def _move(self, listed: CallList) -> None:
        for i, call in enumerate(self.calls):
            for j, view in enumerate(call.views):
                listed.move(i, j, self.address(view.buffer))

    def address(self, buffer: Buffer) -> int:
        """Where a buffer lies."""
        if buffer.storage is not None:
            return cpu.address(buffer.storage)
        return cpu.address(self._arena) + self.layout.buffers[buffer]

    def prove(self) -> None:
        """One step on the numbers that the recorded step found."""
        _, error = self._compiled.replay(0, 1, NOTHING, NOTHING)
        if error is not None:
            raise error

    def singly(self) -> list[Callable[[], None]]:
        """Each call as a function that runs it by itself, on the program's memory: to measure."""
        return self._compiled.singly()

    def replay(
        self, steps: int, feeds: Wires = NOTHING, takes: Wires = NOTHING
    ) -> tuple[int, GradcliError | None]:
        """Run so many steps; gives how many ran to their end, and why the next one did not."""
        held, more = [], []
        for source in self._varying:
            rows = source.rows(steps)
            if rows is None:
                continue
            held.append(cpu.borrow(rows))
            target: Array = source.varying()
            nbytes = target.numel * target.dtype.size
            to = cpu.place(target.storage, target.offset * target.dtype.size)
            more.append((to, 0, cpu.place(held[-1], 0), nbytes, nbytes))
        for leaf, grad in self._recording.grads.items():
            leaf.grad = grad
        return self._in_stretches(steps, Wires([*feeds.listed, *more]) if more else feeds, takes)

    def _in_stretches(
        self, steps: int, feeds: Wires, takes: Wires
    ) -> tuple[int, GradcliError | None]:
        """Back in Python every tenth of a second, so that Ctrl-C is heard."""
        done, length = 0, 1
        while True:
            began = time.perf_counter()
            made, error = self._compiled.replay(done, min(length, steps - done), feeds, takes)
            done += made
            if error is not None or done == steps:
                return done, error
            length = max(1, int(STRETCH_SECONDS * made / (time.perf_counter() - began)))


def _imagined(calls: Sequence[Call]) -> dict[Buffer, int]:
    """Addresses that nothing else has, for planning before there is memory."""
    address: dict[Buffer, int] = {}
    free = _PAGE
    for call in calls:
        for view in call.views:
            if view.buffer not in address:
                address[view.buffer] = free
                free += -(-(view.buffer.nbytes + 1) // _PAGE) * _PAGE
    return address
