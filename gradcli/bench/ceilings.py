"""What this machine can do at most, measured here and now by two kernels that do nothing else.

Arithmetic: multiply-adds that never leave the registers. Memory: copies of as many bytes as fit
into one cache or another, because a call whose tensors fit into a near cache is not held up by the
far one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from gradcli import engine
from gradcli.bench import timing
from gradcli.dataclass import dataclass
from gradcli.engine.array import empty, run
from gradcli.engine.device import cpu

# Bytes read and written by one copy, all threads together: from the first cache to main memory.
LEVELS = (1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 25, 1 << 27)
LEAST = 3  # turns of each ceiling at least
SECONDS = 0.03  # for each ceiling, each time that all are measured
COPY_BYTES = 1 << 23  # the least that a turn copies
MULTIPLY_ADDS = 12 * 16 * 5_000  # of a task: 12 vectors of up to 16 numbers, 5,000 times
TASKS = 4  # for each thread


@dataclass(frozen=True)
class Ceilings:
    """The fastest of many turns each.

    Attributes:
        gflops: float32 multiply-adds, each two operations.
        copies: (bytes read and written, GB/s), the smallest first.
    """

    gflops: float
    copies: tuple[tuple[int, float], ...]
    threads: int

    def gbs(self, nbytes: float) -> float:
        """The copy bandwidth for a call that touches `nbytes` bytes."""
        return next((rate for size, rate in self.copies if nbytes <= size), self.copies[-1][1])

    def least_seconds(self, flops: float, nbytes: float) -> tuple[float, str]:
        """The time below which a call cannot come, and what sets it: "compute" or "memory"."""
        compute, memory = flops / self.gflops / 1e9, nbytes / self.gbs(nbytes) / 1e9
        return (compute, "compute") if compute > memory else (memory, "memory")

    def as_json(self) -> dict[str, Any]:
        """The figures, and with how many threads they were reached."""
        copies = [{"bytes": size, "gbs": round(rate, 1)} for size, rate in self.copies]
        return {"gflops": round(self.gflops, 1), "copies": copies, "threads": self.threads}


@dataclass
class _Task:
    """One ceiling: the work of a turn, what the turn amounts to, and the fastest one so far."""

    work: Callable[[], None]
    amount: float
    seconds: float = math.inf

    def turn(self) -> None:
        self.seconds = min(self.seconds, timing.once(self.work))

    @property
    def rate(self) -> float:
        return self.amount / self.seconds / 1e9


class Meter:
    """Measures the ceilings a little at a time, so that it meets the machine in its good moments.

    A virtual machine may share its cores with others for seconds on end; what is measured between
    two such calls would then seem faster than the ceiling.
    """

    def __init__(self) -> None:
        self._threads = cpu.threads()
        self._compute = _multiply_adds(self._threads)
        self._copies = [(size, _copies(size, self._threads)) for size in LEVELS]

    def run(self, seconds: float = SECONDS) -> None:
        """Another go at each: without a break, so that no thread falls asleep in between."""
        for task in (self._compute, *(task for _, task in self._copies)):
            began = time.perf_counter()
            for _ in range(LEAST):
                task.turn()
            while time.perf_counter() - began < seconds:
                task.turn()

    def ceilings(self) -> Ceilings:
        """The fastest turns so far."""
        copies = tuple((size, task.rate) for size, task in self._copies)
        return Ceilings(self._compute.rate, copies, self._threads)


def _multiply_adds(threads: int) -> _Task:
    """Chains of s * 0.5 + 0.5, which stay near 1: no infinity, no subnormal."""
    halves = engine.tensor([0.5, 0.5], dtype=engine.float32).array
    out = empty((TASKS * threads,), engine.float32)
    work = partial(run, "fma_rate", halves, out, sizes=(MULTIPLY_ADDS,))
    return _Task(work, 2 * MULTIPLY_ADDS * TASKS * threads)


def _copies(size: int, threads: int) -> _Task:
    """A copy of which each thread keeps to its own part; repeated where it is small."""
    shape = (threads, max(1, size // (2 * engine.float32.size * threads)))
    source, target = engine.zeros(*shape).array, engine.zeros(*shape).array  # all pages are there
    rounds = max(1, COPY_BYTES // size)
    work = partial(run, "copy_rate", source, target, sizes=(rounds,))
    return _Task(work, 2 * source.numel * source.dtype.size * rounds)
