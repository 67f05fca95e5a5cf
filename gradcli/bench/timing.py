"""Times of work that is repeated: medians, of turns that alternate so that noise hits all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from gradcli.dataclass import dataclass

WARM_UP = 3
TURN = 10  # measurements of one contender before the next one's turn
STRETCH = 0.005  # seconds of one measurement, about
LONGEST = 100  # steps of one measurement at most


@dataclass(frozen=True)
class Spread:
    """Milliseconds of one piece of work: the median, and the middle half of all measurements."""

    ms: float
    low: float
    high: float
    measurements: int

    def as_json(self) -> dict[str, Any]:
        """The figures, rounded to a tenth of a microsecond."""
        return {key: round(value, 4) for key, value in asdict(self).items()}


def spread(seconds: Sequence[float]) -> Spread:
    """The median and the quartiles; of one measurement they are that one."""
    if len(seconds) == 1:
        low = middle = high = seconds[0]
    else:
        low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return Spread(1e3 * middle, 1e3 * low, 1e3 * high, len(seconds))


def once(work: Callable[[], object]) -> float:
    """Seconds of one turn."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def repeated(work: Callable[[], object], times: int) -> float:
    """The median of `times` runs, in seconds, after a few that fill caches and start threads."""
    for _ in range(WARM_UP):
        work()
    return statistics.median(once(work) for _ in range(times))


Run = Callable[[int], object]  # runs that many steps


def interleaved(contenders: Mapping[str, Run], times: int, pause: float = 0.0) -> dict[str, Spread]:
    """Each contender's time of a step, measured in turns.

    One measurement is the mean of as many steps as fit into STRETCH seconds. A turn is up to TURN
    of them; it begins after `pause` seconds, in which the threads of the one before go to sleep,
    and with a step that does not count.
    """
    lengths = {name: _length(run) for name, run in contenders.items()}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for begin in range(0, times, TURN):
        for name, run in contenders.items():
            time.sleep(pause)
            run(1)
            stretch = partial(run, lengths[name])
            for _ in range(min(TURN, times - begin)):
                seconds[name].append(once(stretch) / lengths[name])
    return {name: spread(values) for name, values in seconds.items()}


def _length(run: Run) -> int:
    """How many steps a measurement takes; the first ones fill caches and make programs."""
    for _ in range(WARM_UP):
        run(1)
    seconds = once(partial(run, 2)) / 2
    return max(1, min(LONGEST, round(STRETCH / seconds)))
