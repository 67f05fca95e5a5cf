"""The kernel calls of a step: recorded, made into a program, and run one by one with a clock."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field

from gradcli.bench import counting, timing
from gradcli.bench.layers import THE_REST, Scope, Scopes
from gradcli.dataclass import dataclass
from gradcli.engine import recording
from gradcli.engine.array import Array
from gradcli.engine.device.kernels import FACTS, NAMES
from gradcli.engine.program import chain, schedule
from gradcli.engine.program.passes import PASSES, optimized
from gradcli.engine.program.record import Call, Recording
from gradcli.engine.program.replay import Program


@dataclass
class Owned(Recording):
    """A recording that also notes the scope of each call."""

    scopes: Scopes = field(default_factory=Scopes)
    owners: list[Scope] = field(default_factory=list)

    def call(
        self, kernel: str, arrays: Sequence[Array], sizes: Sequence[int], options: Sequence[float]
    ) -> None:
        """Write a call down, and who made it."""
        super().call(kernel, arrays, sizes, options)
        self.owners.append(self.scopes.now)


class CallOwners:
    """Whose the calls of a program are.

    A pass may have put several calls into one. It then writes what the last of them wrote, and
    reads what the first of them read; it belongs to the one with the most arithmetic.
    """

    def __init__(self, recorded: Owned) -> None:
        self._by_trace: dict[object, list[tuple[tuple[int, int], Scope]]] = {}
        self._by_outputs: dict[object, Scope] = {}
        for call, scope in zip(recorded.calls, recorded.owners, strict=True):
            self._by_outputs[_outputs_key(call)] = scope
            for key in _traces(call):
                self._by_trace.setdefault(key, []).append((counting.work(call), scope))

    def owner(self, call: Call) -> Scope:
        """The scope that a call of the program belongs to."""
        if _outputs_key(call) in self._by_outputs:  # still the call that was recorded
            return self._by_outputs[_outputs_key(call)]
        pairs = [pair for key in _traces(call) for pair in self._by_trace.get(key, ())]
        return max(pairs, key=lambda pair: pair[0])[1] if pairs else THE_REST


def _outputs_key(call: Call) -> object:
    """The kernel, and what it writes."""
    return call.kernel, tuple((view.buffer, view.offset) for view in call.outputs)


def _traces(call: Call) -> Iterator[object]:
    """Keys that identify a call: each buffer that it writes, and its first two inputs."""
    yield from (view.buffer for view in call.outputs)
    if len(call.inputs) > 1:
        yield tuple(view.buffer for view in call.inputs[:2])


@dataclass(frozen=True)
class Timed:
    """A call, whose it is, its median time, and how much work it is."""

    call: Call
    scope: Scope
    seconds: float
    flops: int
    nbytes: int

    @property
    def title(self) -> str:
        """Its kernel, with what has become part of it: `matmul_then relu`, `chain mul add`."""
        parts = [self.call.kernel]
        if self.call.kernel == "chain":
            parts += [step.kernel for step in chain.unpacked(self.call.sizes)]
        facts = FACTS[self.call.kernel]
        if facts.then_of:
            parts.append(NAMES[self.call.sizes[facts.row_size]])
        return " ".join(parts)

    @property
    def shapes(self) -> str:
        """The shapes of its tensors, `128x784 784x256 128x256`, without those left out."""
        shapes = [view.shape for view in self.call.views if view.shape != (0,)]
        return " ".join("x".join(map(str, shape)) or "1" for shape in shapes)


@dataclass(frozen=True)
class Parts:
    """The calls of a step.

    Attributes:
        owners: layers and other parts, in the order in which the step comes to them.
        eager: how many calls the step makes eagerly.
        waves: how often the threads of a captured step wait for one another.
        arena: bytes of all intermediates of a captured step.
    """

    calls: list[Timed]
    owners: list[str]
    eager: int
    waves: int
    arena: int


def measure(step: Callable[[], object], scopes: Scopes, times: int) -> Parts:
    """Record a step, and time each call of the program that it becomes.

    The calls run one by one in the order in which the captured step begins them, `times` times
    over, so that each finds in the caches what those before it left there.
    """
    recorded = Owned(scopes=scopes)
    with recording.to(recorded):
        result = step()
    recorded.close()  # the result is still alive, so it counts as used
    del result
    program = Program(optimized(recorded.calls, tuple(PASSES)), recorded)
    origins = CallOwners(recorded)
    alone = program.singly()
    seconds: dict[int, list[float]] = {number: [] for number in _order(program)}
    for _ in range(1 + times):
        for number, samples in seconds.items():
            samples.append(timing.once(alone[number]))
    timed = []
    for number, call in enumerate(program.calls):
        median = statistics.median(seconds[number][1:])
        timed.append(Timed(call, origins.owner(call), median, *counting.work(call)))
    owners = list(dict.fromkeys(scope.owner for scope in recorded.owners))
    return Parts(timed, owners, len(recorded.calls), program.waves, program.arena_bytes)


def _order(program: Program) -> Iterable[int]:
    """The calls by the wave in which they begin.

    In another order they would find their inputs overwritten: what no two waves need at the same
    time may share memory.
    """
    parts = schedule.waves(program.calls, program.plans)
    return dict.fromkeys(part.call for part in parts)
