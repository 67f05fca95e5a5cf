"""A program: calls with the addresses of their tensors, ready to be replayed."""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from gradcli.engine import outside
from gradcli.engine.array import Array
from gradcli.engine.device import cpu
from gradcli.engine.device.program import Compiled, Growth, Transfers
from gradcli.engine.graph import Leaf
from gradcli.engine.program.planned import ProgramPlan, Section
from gradcli.engine.program.record import Buffer, Call, Recording
from gradcli.engine.recording import Varying
from gradcli.errors import GradcliError

STRETCH_SECONDS = 0.1
IN_CACHE = 1 << 16  # bytes of samples that are always near: to time them would cost more
NOTHING = Transfers()


class Program:
    """A recorded step that runs without Python.

    Attributes:
        calls: what it does, after all passes.
        arena_bytes: memory of its intermediates, all allocated before the first step.
        waves: how many times the threads wait for one another in a step.
    """

    def __init__(
        self, calls: Sequence[Call], recording: Recording, inputs: Sequence[Array] = ()
    ) -> None:
        self.calls = list(calls)
        program_plan = ProgramPlan(self.calls)
        self.plans, self.layout = program_plan.plans, program_plan.layout
        self.waves = program_plan.parts[-1].wave + 1 if program_plan.parts else 0
        self.arena_bytes = self.layout.nbytes
        self._arena = cpu.allocate(self.arena_bytes)
        self._samples = {sample for sample in recording.samples if sample.nbytes > IN_CACHE}
        self._sections = [
            (self._compile(section, section.parts(program_plan.parts), inputs), section.function)
            for section in program_plan.sections
        ]
        outputs = (view.buffer.storage for call in self.calls for view in call.outputs)
        self._outputs = list({id(s): s for s in outputs if s is not None}.values())
        self._extents = _merged((cpu.address(s), s.nbytes) for s in self._outputs)
        self._varying: list[Varying] = [source for _, source in recording.varying.values()]
        self.recording = recording  # holds what the varying numbers and assumptions belong to

    def _compile(
        self, section: Section, parts: Sequence[tuple[int, int, int]], inputs: Sequence[Array]
    ) -> Compiled:
        for i, call in enumerate(section.calls):
            for j, view in enumerate(call.views):
                section.call_list.move(i, j, self.address(view.buffer))
        start = cpu.address(self._arena)
        scratch = [
            (start + self.layout.scratch.get(number, 0), self.plans[number].shared_bytes)
            for number in range(section.first, section.first + len(section.calls))
        ]
        gather = [
            number
            for number, call in enumerate(section.calls)
            if any(view.buffer in self._samples for view in call.inputs[:1])
        ]
        return Compiled(section.call_list, parts, _ports(section.calls, inputs), scratch, gather)

    @property
    def sampling_seconds(self) -> float:
        """For how long the gathering of samples kept the steps from going on, all steps so far."""
        return sum(compiled.timed for compiled, _ in self._sections)

    @property
    def grads(self) -> Mapping[Leaf, Array | None]:
        """Where a replay leaves the gradient of each leaf that gets one: memory of its own."""
        return self.recording.grads

    def address(self, buffer: Buffer) -> int:
        """Where a buffer lies."""
        if buffer.storage is not None:
            return cpu.address(buffer.storage)
        return cpu.address(self._arena) + self.layout.buffers[buffer]

    def writes(self, array: Array) -> bool:
        """Whether a replay changes memory that this array may share."""
        low = cpu.address(array.storage)
        before = bisect_right(self._extents, (low + array.storage.nbytes - 1, math.inf))
        return before > 0 and self._extents[before - 1][1] > low

    def grow(self, growths: Sequence[Growth]) -> None:
        """Let numbers of its calls depend on the position; the program has one section."""
        [(compiled, _)] = self._sections
        compiled.grow(growths)

    def move_to(self, position: int) -> None:
        """Let the replays that follow be of steps at this position."""
        [(compiled, _)] = self._sections
        compiled.move_to(position)

    def prove(self) -> None:
        """One step on the numbers that the recorded step found, functions among them."""
        results = iter(self.recording.results)
        sections = [(section, function and next(results)) for section, function in self._sections]
        error = _one_step(sections, 0, NOTHING, NOTHING, NOTHING)
        if error is not None:
            raise error

    def singly(self) -> list[Callable[[], object]]:
        """Each call as a function that runs it by itself, on the program's memory: to measure."""
        alone: list[Callable[[], object]] = []
        for compiled, function in self._sections:
            alone += compiled.singly()
            if function is not None:
                alone.append(partial(outside.run, function, (), ()))
        return alone

    def replay(
        self, steps: int, inputs: Transfers = NOTHING, outputs: Transfers = NOTHING
    ) -> tuple[int, GradcliError | None]:
        """Run so many steps; gives how many ran to their end, and why the next one did not."""
        buffers, more = [], []
        for source in self._varying:
            rows = source.rows(steps)
            if rows is None:
                continue
            buffers.append(cpu.borrow(rows))
            target: Array = source.varying()
            nbytes = target.numel * target.dtype.size
            more.append((target.pointer, 0, buffers[-1].data, nbytes, nbytes))
        for storage in self._outputs:
            storage.version += 1
        for leaf, grad in self.recording.grads.items():
            leaf.grad = grad
        return self._in_stretches(steps, inputs.and_also(more) if more else inputs, outputs)

    def _in_stretches(
        self, steps: int, inputs: Transfers, outputs: Transfers
    ) -> tuple[int, GradcliError | None]:
        """Back in Python every tenth of a second, so that Ctrl-C is heard."""
        count, length = 0, 1
        while True:
            began = time.perf_counter()
            more, error = self._steps(count, min(length, steps - count), inputs, outputs)
            count += more
            if error is not None or count == steps:
                return count, error
            length = max(1, int(STRETCH_SECONDS * more / (time.perf_counter() - began)))

    def _steps(
        self, first: int, steps: int, inputs: Transfers, outputs: Transfers
    ) -> tuple[int, GradcliError | None]:
        """The steps from this one on: all in one go, unless functions are called in between."""
        if len(self._sections) == 1:
            return self._sections[0][0].replay(first, steps, inputs, outputs)
        in_place = inputs.in_place()
        for step in range(first, first + steps):
            error = _one_step(self._sections, step, inputs, in_place, outputs)
            if error is not None:
                return step - first, error
        return steps, None


def _one_step(
    sections: Sequence[tuple[Compiled, Callable[[], object] | None]],
    step: int,
    inputs: Transfers,
    in_place: Transfers,
    outputs: Transfers,
) -> GradcliError | None:
    """One step, section by section: what comes with it is copied before the first of them."""
    for compiled, function in sections:
        _, error = compiled.replay(step, 1, inputs, NOTHING if function else outputs)
        if error is not None or function is None:
            return error
        try:
            outside.run(function, (), ())
        except GradcliError as error:
            return error
        inputs = in_place
    return None


def _ports(calls: Sequence[Call], inputs: Sequence[Array]) -> list[tuple[int, int, int]]:
    """Where calls read an input: its number, the call and which of the call's tensors it is."""
    number = {id(array.storage): i for i, array in enumerate(inputs)}
    return [
        (number[id(view.buffer.storage)], i, j)
        for i, call in enumerate(calls)
        for j, view in enumerate(call.inputs)
        if view.buffer.storage is not None and id(view.buffer.storage) in number
    ]


def _merged(blocks: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Blocks of memory (start, length) as half-open stretches in order that do not touch."""
    stretches: list[tuple[int, int]] = []
    for low, nbytes in sorted(blocks):
        if stretches and low <= stretches[-1][1]:
            low, high = stretches[-1][0], max(stretches.pop()[1], low + nbytes)
            stretches.append((low, high))
        else:
            stretches.append((low, low + nbytes))
    return stretches
