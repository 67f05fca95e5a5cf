"""The launches of a piece of work on a GPU, timed by replaying them with no Python in between."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gradcli.bench.timing import once

if TYPE_CHECKING:
    from gradcli.engine.device.gpu.device import GPU
    from gradcli.engine.device.gpu.driver import Address, Ready

LONGEST = 2000  # times that work is queued before somebody waits

Run = Callable[[], object]  # queues work, and waits for it
Contender = Callable[[int], Run]  # prepares its work, to be done `count` times


class _Recorder:
    """A driver that records what it launches."""

    def __init__(self, driver: Any, calls: list[Ready]) -> None:
        self._driver = driver
        self._calls = calls

    def launch(self, ready: Ready) -> None:
        """Record a launch and pass it on."""
        self._calls.append(ready)
        self._driver.launch(ready)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)


@contextmanager
def record(gpu: GPU) -> Iterator[list[Ready]]:
    """Record the launches of a `with` block, for replays.

    They hold no memory: keep what they read and write alive where its numbers matter.
    """
    calls: list[Ready] = []
    driver: Any = gpu.driver
    gpu.driver = _Recorder(driver, calls)
    try:
        yield calls
    finally:
        gpu.driver = driver


def replays(gpu: GPU, launches: Sequence[Ready]) -> Contender:
    """Launches one after another, `count` times over, in one replay."""

    def ready(count: int) -> Run:
        recorded = gpu.driver.record(list(launches) * count)

        def run() -> None:
            recorded.replay()
            gpu.driver.synchronize()

        return run

    return ready


def copies(gpu: GPU, to: Address, source: Address, nbytes: int) -> Contender:
    """The device's own copy."""

    def ready(count: int) -> Run:
        def run() -> None:
            for _ in range(count):
                gpu.driver.copy(to, source, nbytes)
            gpu.driver.synchronize()

        return run

    return ready


def long_enough(ready: Contender, stretch: float) -> tuple[Run, int]:
    """Work that takes `stretch` seconds or more, and how often it repeats the piece."""
    run, count = ready(1), 1
    run()  # loads and compiles what is not there yet
    seconds = once(run)
    while seconds * 1.5 < stretch and count < LONGEST:
        count = min(LONGEST, math.ceil(count * stretch / max(seconds, 1e-6)))
        run = ready(count)
        seconds = once(run)
    return run, count
